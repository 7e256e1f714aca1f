/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_private.h: declares what the rules of a diagnosis share: the symptoms that they explain,
 * the one way to turn explained milliseconds into a score, and the pieces of their texts.
 */
#pragma once

#include "daemon/core/diagnose/rules/diagnose.h"
#include "proto/text.h"

#define NOTABLE_UNENDED 0.05 /* of frames; few are in flight, or of the end */

/* What is wrong, apart from why. */
enum symptom {
	SYMPTOM_CHANGE,	  /* frames became slower than usual */
	SYMPTOM_JITTER,	  /* some frames take much longer than the others */
	SYMPTOM_CONSTANT, /* below the target, over the deadline, or slow, also at the best times */
	SYMPTOM_LATENCY,  /* a frame waits longer than it is worked on */
	SYMPTOMS,
	SYMPTOM_NONE = SYMPTOMS
};

/* Milliseconds of a mean frame by symptom: what it costs, or what a rule explains of it. */
struct claims {
	double change, jitter, constant, latency;
};

/* The facts with what follows from them. */
struct view {
	const struct facts *facts;
	double excess[SYMPTOMS]; /* 0 = no such symptom */
	bool of_throttled; /* SYMPTOM_CHANGE is: throttled frames take longer than the others */
	bool wanted;	   /* a rate, or a deadline */
	bool free;	   /* the loop never waits, and no rate is wanted */
	bool slow_only;	   /* SYMPTOM_CONSTANT without a target or a deadline: weaker */
	bool missed;	   /* SYMPTOM_CONSTANT by the deadline */
	bool overdue;	   /* SYMPTOM_CHANGE is of the work: the rate is as usual */
	bool faint;	   /* SYMPTOM_JITTER costs next to nothing */
	bool starved;	   /* SYMPTOM_CONSTANT is a wait for a processor, whatever is wanted */
	bool changed;	   /* the best times are the usual ones, else those of now */
	bool pipelined;
	bool aligned; /* to the camera: work no longer fits between two of its frames */
	/* misses its own deadline: the two symptoms are of it, for frames have neither; NULL */
	const struct fact_stage *late;
	bool stopped;	/* the app's processes were, when its frames were slow */
	double base_ms; /* a frame at its best times, without its slow ones */
	double run_delay, io_ms, stopped_ms; /* growth of waits; 0 if not known */
	double waits_ms;		     /* all of them */
	double compute; /* of SYMPTOM_CHANGE: neither capture nor waits, so of the computing */
	double shared;	/* of that what lower clocks may explain */
	double work_ms; /* of all stages but capture, at the best times */
	double slowest_ms, wait_ms; /* of one stage; waits before all stages */
	/* grew beyond the others, by own_ms: none of what slows all stages explains that; NULL */
	const struct fact_stage *own;
	double own_ms;
	/* NULL = none: by role, by most of something; dominant is never capture */
	const struct fact_stage *capture, *infer, *fallback, *dominant, *grown, *spiky, *waited;
	double dominance; /* of dominant at the best times: of the work, pipelined of the period */
};

struct judged {
	const struct rule *rule;
	enum symptom symptom; /* the one with the best score, which is the finding's */
	double ms[SYMPTOMS];  /* what it explains of each, at most the excess */
	double score[SYMPTOMS + 1];
	struct finding finding;
	struct text text;		/* finding.text */
	const struct fact_stage *stage; /* that it names; NULL */
};

/* Judges, and writes the text. */
typedef void evaluate_function(const struct view *view, struct judged *judged);

struct rule {
	evaluate_function *evaluate;
	bool notable;	   /* worth a line of low confidence without a symptom */
	uint8_t metric[7]; /* enum fact_metric + 1, the most important first; 0 = no more */
	uint32_t explains; /* bits of causes that are its consequences */
	const char *advice[3];
};

extern const struct rule diagnosis_rules[CAUSE_COUNT];
evaluate_function rule_thermal, rule_under_voltage, rule_over_current, rule_clock_limit,
	rule_cpu_fallback, rule_bound, rule_capture_stall, rule_cpu_contention, rule_scheduling,
	rule_pauses, rule_memory_leak, rule_memory_pressure, rule_io_stall, rule_gpu_bound,
	rule_memory_bandwidth, rule_queueing, rule_deadline_unreachable, rule_profiler_overhead,
	rule_stopped;

/* What a pressure explains of `most` that rose to `least` percent or more, or is there at all
 * times: somebody waited in that part of the time, and averages lag. */
struct claims pressed(
	const struct view *view, enum fact_metric metric, double least, struct claims most);
/* rules_cpu.c: what the wait for a processor explains. */
struct claims processor_waits(const struct view *view);

/* rules_symptoms.c */
void view_init(struct view *view, const struct facts *facts);
/* Sets score, explained_ms and symptom: evidence is how sure the cause is to be present, 0 … 1, the
 * claims what it would explain of each symptom. Without a symptom the score is low. */
void judge(const struct view *view, struct judged *judged, double evidence, struct claims claims);
void take_best(struct judged *judged); /* symptom, score and explained_ms, from the arrays */
bool explains(const struct view *view, const struct claims *claims); /* more than next to nothing */
/* 0 … 1: how far a metric moved together with the frames; sign -1: it falls when they get slower.
 */
double agreement(const struct view *view, enum fact_metric metric, double sign);
/* The same, whenever the metric moved. */
double together_with(const struct view *view, enum fact_metric metric, double sign);
/* 0 … 1: how far the metric was high when there were slow frames; 0 if that is not known. */
double tie(const struct view *view, enum fact_metric metric);
/* Between its usual level and that of now, again and again: it has no time at which it began. */
bool flickers(const struct fact_series *series);
bool is_taxed(const struct facts *facts); /* throttled frames do take longer than others */
/* Mean of a metric; NAN if it is not known, and without a metric. */
struct fact metric_of(const struct view *view, enum fact_metric metric);
/* now - usual; all of now if usual is not known; 0 if now is not. */
double growth_of(struct fact fact);
double change_of(struct fact fact); /* the same, but 0 if usual is not known */
double stage_base(const struct view *view, const struct fact_stage *stage);
double share_of_base(const struct view *view, const struct fact_stage *stage); /* NULL: 0 */
bool on_cpu(const struct fact_stage *stage); /* or on a unit that is not known */
double or_zero(double value);		     /* instead of NAN */
double clamp01(double value);		     /* NAN: 0 */

/* rules_text.c */
struct word {
	char text[48];
};
struct word number(double value);	 /* with as many decimals as matter */
struct text_span duration(double value); /* "40 s", "4 min", "3 h 10 min" */
struct word byte_word(double value);	 /* "3.1 GiB" */
/* Append to the text: a number between two strings, "infer 82 % of the frame; ", " for 4 min",
 * "stress (4711)". What is not known is omitted with its strings. */
void say(struct judged *judged, const char *before, double value, const char *after);
void say_share(const struct view *view, struct judged *judged, const struct fact_stage *stage);
void say_since(const struct view *view, struct judged *judged, enum fact_metric metric);
void say_process(struct judged *judged, const struct fact_process *process, const char *after);
void write_symptom(const struct view *view, struct judged *judged);
__attribute__((format(printf, 2, 3))) void add_evidence(
	struct judged *judged, const char *format, ...);
/* The metrics of the rule, then slow frames or the stage, as far as there is space. */
void add_metrics(const struct view *view, struct judged *judged);
