/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callbacks.cpp: shows how callbacks of a framework such as ROS 2 are timed: a node whose timer
 * publishes images, and whose subscription detects objects in them, on two threads of an executor.
 * The time stamp in the message's header is the id of the frame, which ties its callbacks together.
 *
 *     c++ -std=c++11 callbacks.cpp $(pkg-config --cflags --libs libedgeprof) && ./a.out 100
 *     edgeprofctl frames callbacks
 */
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <edgeprof.hpp>

namespace
{

/* As std_msgs/Header and sensor_msgs/Image have them. */
struct header {
	std::uint64_t stamp_ns;
};

struct image {
	::header header;
	std::vector<unsigned char> data;
};

/* A stand-in for rclcpp's multi-threaded executor: runs what is ready, on two threads. */
class executor
{
      public:
	void post(std::function<void()> callback)
	{
		const std::lock_guard<std::mutex> lock(mutex_);
		ready_.push_back(std::move(callback));
		changed_.notify_one();
	}

	void stop()
	{
		const std::lock_guard<std::mutex> lock(mutex_);
		stopped_ = true;
		changed_.notify_all();
	}

	void spin()
	{
		std::thread second([this] { run(); });
		run();
		second.join();
	}

      private:
	void run()
	{
		for (std::unique_lock<std::mutex> lock(mutex_);;) {
			changed_.wait(lock, [this] { return stopped_ || !ready_.empty(); });
			if (ready_.empty()) {
				return;
			}
			const std::function<void()> callback = std::move(ready_.front());
			ready_.pop_front();
			lock.unlock();
			callback();
			lock.lock();
		}
	}

	std::mutex mutex_;
	std::condition_variable changed_;
	std::deque<std::function<void()>> ready_;
	bool stopped_ = false;
};

std::uint64_t wall_clock_ns()
{
	const auto now = std::chrono::system_clock::now().time_since_epoch();
	return static_cast<std::uint64_t>(
		std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void work_ms(int ms)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

class detector
{
      public:
	detector(executor &executor, unsigned long frames) : executor_(executor), left_(frames)
	{
		executor_.post([this] { on_timer(); });
	}

      private:
	/* Each callback sets the frame of its thread first: the executor chose the thread. */
	void on_timer()
	{
		const std::shared_ptr<image> message(new image{{wall_clock_ns()}, {}});
		edgeprof::frame::set(message->header.stamp_ns);
		{
			EDGEPROF_SCOPE("on_timer", "capture");
			message->data.resize(640 * 480);
			work_ms(3);
		}
		executor_.post([this, message] { on_image(*message); });
	}

	void on_image(const image &message)
	{
		const bool last = --left_ == 0;
		edgeprof::frame::set(message.header.stamp_ns);
		if (!last) {
			executor_.post([this] { on_timer(); }); /* the next one, meanwhile */
		}
		{
			EDGEPROF_SCOPE("on_image");
			detect(message);
		}
		/* stamps are wall clock times; the frame began as long ago as the stamp is old */
		edgeprof::frame::finished(message.header.stamp_ns,
			edgeprof_now() - (wall_clock_ns() - message.header.stamp_ns));
		if (last) {
			executor_.stop();
		}
	}

	static void detect(const image &message)
	{
		EDGEPROF_SCOPE("infer", "model", "cpu");
		(void)message;
		work_ms(5);
	}

	executor &executor_;
	std::atomic<unsigned long> left_;
};

} // namespace

int main(int argc, char **argv)
{
	edgeprof::init("callbacks");
	executor executor;
	detector node(executor, argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100);
	executor.spin();
	return 0;
}
