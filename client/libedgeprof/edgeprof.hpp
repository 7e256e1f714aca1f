/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edgeprof.hpp: wraps edgeprof.h for C++11 and later. Header only; link with -ledgeprof.
 *
 *     edgeprof::init("cam");
 *     const edgeprof::stage infer("infer");          // once: a member, or at namespace scope
 *     for (std::uint64_t n = 0;; n++) {
 *         edgeprof::frame frame(n);
 *         edgeprof::scope scope(infer);              // to the end of the block
 *         …
 *     }
 *
 * Or: { EDGEPROF_SCOPE("infer"); … }, which is an edgeprof::scope here, too.
 *
 * A scope that is left by an exception records its stage all the same, as failed. Nothing here
 * throws or allocates; what holds for the functions of edgeprof.h (threads, signals, fork, cost)
 * holds for what calls them here. Scopes and frames belong to the thread that made them.
 */
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <initializer_list>

#include "edgeprof.h"

namespace edgeprof
{

using value = ::edgeprof_value; /* {"boxes", 3} */

/* 0 or -ENOMEM; see edgeprof_init. */
inline int init(const char *app = nullptr) noexcept
{
	return ::edgeprof_init(app);
}

inline void shutdown() noexcept
{
	::edgeprof_shutdown();
}

namespace detail
{

template <class Rep, class Period>
std::uint64_t nanoseconds(std::chrono::duration<Rep, Period> time) noexcept
{
	const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
	return ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
}

/* Detects whether an exception that was not there before is propagating. */
class passing
{
      public:
#if defined(__cpp_lib_uncaught_exceptions)
	bool now() const noexcept
	{
		return std::uncaught_exceptions() > before_;
	}

      private:
	int before_ = std::uncaught_exceptions();
#else
	bool now() const noexcept
	{
		return std::uncaught_exception() && !before_;
	}

      private:
	bool before_ = std::uncaught_exception();
#endif
};

} // namespace detail

/* A stage's number; cheap to copy. */
class stage
{
      public:
	explicit stage(const char *name) noexcept : number_(::edgeprof_stage(name))
	{
	}

	/* category and unit may be nullptr; they count when the name is new. */
	stage(const char *name, const char *category, const char *unit = nullptr) noexcept
	    : number_(::edgeprof_stage_declare(name, category, unit, 0))
	{
	}

	int number() const noexcept
	{
		return number_;
	}

	/* An or of EDGEPROF_CPU_TIME, EDGEPROF_PROCESS_CPU, EDGEPROF_RSS. */
	const stage &options(unsigned options) const noexcept
	{
		::edgeprof_stage_options(number_, options);
		return *this;
	}

	/* 0: none. */
	template <class Rep, class Period>
	const stage &deadline(std::chrono::duration<Rep, Period> time) const noexcept
	{
		::edgeprof_deadline(number_, detail::nanoseconds(time));
		return *this;
	}

	/* One that was timed elsewhere: start as of edgeprof_now(). */
	void complete(std::uint64_t start_ns, std::uint64_t duration_ns,
		std::uint64_t frame = EDGEPROF_NO_FRAME) const noexcept
	{
		::edgeprof_complete(number_, start_ns, duration_ns, frame);
	}

	/* By id: may overlap, and end on another thread. */
	void begin(std::uint64_t id) const noexcept
	{
		::edgeprof_begin_id(number_, id);
	}

	void end(std::uint64_t id) const noexcept
	{
		::edgeprof_end_id(number_, id);
	}

      private:
	int number_;
};

/* Times a stage from here to the end of the block. */
class scope
{
      public:
	explicit scope(const stage &stage) noexcept : scope(stage.number())
	{
	}

	/* stage: a number of edgeprof_stage. */
	explicit scope(int stage) noexcept : token_(::edgeprof_begin(stage))
	{
	}

	~scope()
	{
		if (!ended_) {
			finish(failed_ || passing_.now());
		}
	}

	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;

	/* It ends as failed, without an exception. */
	void fail() noexcept
	{
		failed_ = true;
	}

	/* Ends it before the block does. */
	void end() noexcept
	{
		if (!ended_) {
			ended_ = true;
			finish(failed_);
		}
	}

      private:
	void finish(bool failed) noexcept
	{
		if (failed) {
			::edgeprof_end_failed(token_);
		} else {
			::edgeprof_end(token_);
		}
	}

	detail::passing passing_;
	bool failed_ = false, ended_ = false;
	::edgeprof_token token_; /* last: the clock is read when all else is done */
};

/* The frame of this thread's events from here to the end of the block. Frames do not nest. */
class frame
{
      public:
	explicit frame(std::uint64_t id) noexcept
	{
		::edgeprof_frame_begin(id);
	}

	~frame()
	{
		::edgeprof_frame_end();
	}

	frame(const frame &) = delete;
	frame &operator=(const frame &) = delete;

	/* A finished frame that began elsewhere. */
	static void finished(std::uint64_t id, std::uint64_t start_ns) noexcept
	{
		::edgeprof_frame(id, start_ns);
	}

	/* The id that this thread's next events carry. */
	static void set(std::uint64_t id) noexcept
	{
		::edgeprof_set_frame(id);
	}

	/* One went by. */
	static void tick() noexcept
	{
		::edgeprof_tick();
	}

	template <class Rep, class Period>
	static void deadline(std::chrono::duration<Rep, Period> time) noexcept
	{
		::edgeprof_frame_deadline(detail::nanoseconds(time));
	}
};

class gauge
{
      public:
	explicit gauge(const char *name, const char *unit = nullptr) noexcept
	    : number_(::edgeprof_gauge_declare(name, unit))
	{
	}

	void set(double number) const noexcept
	{
		::edgeprof_gauge(number_, number);
	}

      private:
	int number_;
};

class counter
{
      public:
	explicit counter(const char *name, const char *unit = nullptr) noexcept
	    : number_(::edgeprof_gauge_declare(name, unit))
	{
	}

	void add(double increment = 1) const noexcept
	{
		::edgeprof_counter(number_, increment);
	}

      private:
	int number_;
};

/* A number of one stage in this thread's frame. */
class attribute
{
      public:
	attribute(const stage &stage, const char *name, const char *unit = nullptr) noexcept
	    : stage_(stage.number()), number_(::edgeprof_gauge_declare(name, unit))
	{
	}

	void set(double number) const noexcept
	{
		::edgeprof_attribute(stage_, number_, number);
	}

      private:
	int stage_, number_;
};

/* What the daemon advises: level EDGEPROF_ADVICE_NONE without any. See edgeprof_advice. */
inline struct ::edgeprof_advice advice() noexcept
{
	struct ::edgeprof_advice now;
	::edgeprof_advice(&now);
	return now;
}

/* Call once per frame: true if it should be skipped. */
inline bool should_skip() noexcept
{
	return ::edgeprof_should_skip();
}

/* A moment with this process's memory, and values. */
inline void mark(const char *label, std::initializer_list<value> values = {}) noexcept
{
	::edgeprof_mark_with(label, values.begin(), values.size());
}

} // namespace edgeprof

/* As in edgeprof.h, and an exception that leaves the block makes it a failed execution. */
#undef EDGEPROF_SCOPE_
#define EDGEPROF_SCOPE_(site, block, stage, category, unit, ...) \
	static int site = EDGEPROF_SITE_(stage);                 \
	const ::edgeprof::scope block(EDGEPROF_SITE_STAGE_(site, stage, category, unit))
