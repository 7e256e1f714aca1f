/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads that pass frames: one captures frame k + 1 while the other infers frame k. The
 * frame's id ties their events together. Every tenth inference fails by an exception.
 *
 *     c++ -std=c++11 hello_stages.cpp $(pkg-config --cflags --libs libedgeprof) && ./a.out 100
 *     edgeprofctl frames hello-cpp
 */
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>

#include <edgeprof.hpp>

namespace
{

struct picture {
	std::uint64_t id, start_ns;
};

/* Frames on their way to the second thread, at most two. */
class belt
{
      public:
	void put(const picture &frame)
	{
		std::unique_lock<std::mutex> lock(mutex_);
		changed_.wait(lock, [this] { return frames_.size() < 2; });
		frames_.push(frame);
		length_.set(static_cast<double>(frames_.size()));
		changed_.notify_one();
	}

	bool take(picture &ret)
	{
		std::unique_lock<std::mutex> lock(mutex_);
		changed_.wait(lock, [this] { return ended_ || !frames_.empty(); });
		if (frames_.empty()) {
			return false;
		}
		ret = frames_.front();
		frames_.pop();
		changed_.notify_one();
		return true;
	}

	void end()
	{
		const std::lock_guard<std::mutex> lock(mutex_);
		ended_ = true;
		changed_.notify_one();
	}

      private:
	std::mutex mutex_;
	std::condition_variable changed_;
	std::queue<picture> frames_;
	bool ended_ = false;
	const edgeprof::gauge length_{"queue", "frames"};
};

void work_ms(int ms)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

void infer(const edgeprof::stage &stage, std::uint64_t id)
{
	const edgeprof::scope scope(stage);
	work_ms(4);
	if (id % 10 == 9) {
		throw std::runtime_error("no result");
	}
}

void infer_all(belt &belt)
{
	const edgeprof::stage stage("infer", "model", "cpu");
	const edgeprof::counter failures("failures");
	stage.options(EDGEPROF_CPU_TIME).deadline(std::chrono::milliseconds(33));
	for (picture frame; belt.take(frame);) {
		edgeprof::frame::set(frame.id);
		try {
			infer(stage, frame.id);
		} catch (const std::runtime_error &) {
			failures.add();
		}
		edgeprof::frame::finished(frame.id, frame.start_ns);
	}
}

} // namespace

int main(int argc, char **argv)
{
	const unsigned long frames = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100;
	edgeprof::init("hello-cpp");
	edgeprof::mark("start", {{"frames", static_cast<double>(frames)}});
	belt belt;
	std::thread second(infer_all, std::ref(belt));
	const edgeprof::stage capture("capture");
	for (unsigned long n = 0; n < frames; n++) {
		const picture frame = {n, edgeprof_now()};
		edgeprof::frame::set(n);
		edgeprof::scope scope(capture);
		work_ms(3);
		scope.end();
		belt.put(frame);
	}
	belt.end();
	second.join();
	return 0;
}
