/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c: lists the rules of the diagnosis: a row per cause, see struct rule. */
#include "daemon/core/diagnose/rules/rules_private.h"

/* clang-format off */
#define M(name) (FACT_##name + 1)
#define BIT(name) (UINT32_C(1) << CAUSE_##name)
#define BOUND (BIT(INFERENCE_BOUND) | BIT(PREPROCESSING_BOUND) | BIT(STAGE_BOUND) | \
	BIT(DEADLINE_UNREACHABLE) | BIT(GPU_BOUND) | BIT(QUEUEING))
#define PAUSED (BIT(PAUSES) | BIT(STOPPED))

const struct rule diagnosis_rules[CAUSE_COUNT] = {
[CAUSE_THERMAL_THROTTLING] = {rule_thermal, true,
	{M(THROTTLE_ACTIVE), M(TEMPERATURE), M(HEADROOM), M(SOFT_TEMP_LIMIT), M(FREQ_CAPPED),
		M(CPU_FREQUENCY), M(GPU_FREQUENCY)},
	BOUND | BIT(CLOCK_LIMIT), {
	"improve cooling: heat sink, fan, free air around the board",
	"lower the load: process fewer frames, use a smaller input or model",
	"choose a lower power mode or clock that the board can hold"}},
[CAUSE_UNDER_VOLTAGE] = {rule_under_voltage, true,
	{M(UNDER_VOLTAGE), M(THROTTLE_ACTIVE), M(FREQ_CAPPED), M(TEMPERATURE), M(POWER)},
	BOUND | BIT(CLOCK_LIMIT) | BIT(THERMAL_THROTTLING), {
	"use the supply that the board is specified for, and a short thick cable",
	"power USB devices from a hub of their own"}},
[CAUSE_OVER_CURRENT] = {rule_over_current, true,
	{M(OVER_CURRENT_RATE), M(OVER_CURRENT), M(POWER), M(POWER_BUDGET), M(GPU_FREQUENCY)},
	BOUND | BIT(CLOCK_LIMIT), {
	"choose a power mode that the supply and the module can sustain",
	"use a supply with more current"}},
[CAUSE_CLOCK_LIMIT] = {rule_clock_limit, false,
	{M(CPU_FREQUENCY), M(GPU_FREQUENCY), M(THROTTLE_ACTIVE), M(CPU_BUSIEST)}, BOUND, {
	"select a faster governor (schedutil, performance) or raise scaling_max_freq",
	"choose a higher power mode (Jetson: nvpmodel, jetson_clocks)"}},
[CAUSE_CPU_FALLBACK] = {rule_cpu_fallback, true, {M(GPU), M(ENGINE), M(APP_CPU)}, BOUND, {
	"check that the delegate or execution provider was loaded, and its log",
	"replace operators that the unit does not support"}},
[CAUSE_INFERENCE_BOUND] = {rule_bound, false, {M(GPU), M(APP_CPU), M(CPU)}, 0, {
	"quantize the model, or use a smaller one", "lower the input resolution",
	"run inference on an accelerator, or on every second frame"}},
[CAUSE_PREPROCESSING_BOUND] = {rule_bound, false, {M(APP_CPU), M(CPU)}, 0, {
	"let the camera deliver the size and format of the model",
	"resize and convert on the GPU or with SIMD, into a buffer that is reused",
	"preprocess the next frame while this one is inferred"}},
[CAUSE_STAGE_BOUND] = {rule_bound, false, {M(APP_CPU), M(CPU)}, 0, {
	"profile this stage: it takes most of the frame",
	"move it to a thread of its own, or do it less often"}},
[CAUSE_CAPTURE_STALL] = {rule_capture_stall, false, {M(CPU_IOWAIT), M(APP_IODELAY)},
	PAUSED | BOUND, {
	"check the camera's rate, exposure (low light), cable and USB bandwidth",
	"capture in a thread of its own and keep the newest frame only",
	"lower the resolution or use a compressed format"}},
[CAUSE_CPU_CONTENTION] = {rule_cpu_contention, true,
	{M(APP_RUN_DELAY), M(PRESSURE_CPU), M(CPU), M(APP_INVOLUNTARY), M(CPU_STEAL)}, BOUND | PAUSED, {
	"stop the other process, or limit it (CPUQuota=, CPUWeight=, nice)",
	"give the app processors of its own (AllowedCPUs=, taskset)",
	"raise the app's priority"}},
[CAUSE_SCHEDULING] = {rule_scheduling, false,
	{M(APP_RUN_DELAY), M(APP_THREADS), M(APP_CPU), M(PRESSURE_CPU)},
	BOUND | PAUSED | BIT(CPU_CONTENTION), {
	"check quota, priority and affinity of the app (CPUQuota=, Nice=, AllowedCPUs=)",
	"use no more threads than processors",
	"let threads that frames wait for have the priority of the frame's thread"}},
[CAUSE_PAUSES] = {rule_pauses, false, {M(APP_MINOR_FAULTS), M(APP_SYSTEM), M(APP_RSS)}, 0, {
	"allocate buffers once and reuse them",
	"collect garbage between frames, and less of it (Python: gc.freeze, gc.disable)",
	"keep freed memory in the process (mallopt, a pool)"}},
[CAUSE_MEMORY_LEAK] = {rule_memory_leak, true,
	{M(APP_RSS), M(MEMORY_AVAILABLE), M(MEMORY_PERCENT)}, BIT(MEMORY_PRESSURE), {
	"limit queues, and release frames and tensors after use",
	"find the owner of the memory: heaptrack, tracemalloc, memory of stages",
	"limit the damage until then: MemoryMax=, Restart="}},
[CAUSE_MEMORY_PRESSURE] = {rule_memory_pressure, true,
	{M(PRESSURE_MEMORY), M(MEMORY_AVAILABLE), M(SWAP_USED), M(APP_MAJOR_FAULTS)},
	BOUND | PAUSED | BIT(IO_STALL) | BIT(CAPTURE_STALL), {
	"stop or limit the largest process (MemoryMax=)",
	"lock the app's memory (mlockall), or use zram instead of swap on a card",
	"use a smaller model or batch"}},
[CAUSE_IO_STALL] = {rule_io_stall, true,
	{M(APP_IODELAY), M(PRESSURE_IO), M(CPU_IOWAIT), M(APP_MAJOR_FAULTS), M(APP_READ), M(APP_WRITE)},
	BOUND | PAUSED | BIT(CAPTURE_STALL), {
	"write from another thread with a bounded queue, and fsync less often",
	"log to memory or to faster storage",
	"limit the process that writes (IOWriteBandwidthMax=)"}},
[CAUSE_GPU_BOUND] = {rule_gpu_bound, false, {M(GPU), M(ENGINE), M(GPU_FREQUENCY), M(EMC)}, BIT(INFERENCE_BOUND), {
	"use a smaller or quantized model (FP16, INT8)",
	"move part of the work to another unit (DLA), or batch it",
	"check which other process uses the unit"}},
[CAUSE_MEMORY_BANDWIDTH] = {rule_memory_bandwidth, true, {M(EMC), M(GPU), M(CPU)}, BOUND, {
	"copy frames less: zero-copy buffers, smaller formats, lower resolution",
	"use INT8 or FP16 weights", "choose a power mode with a higher memory clock"}},
[CAUSE_QUEUEING] = {rule_queueing, false, {M(APP_CPU)}, 0, {
	"limit the queue to one frame and drop the oldest",
	"divide the slowest stage, or run it in several threads"}},
[CAUSE_DEADLINE_UNREACHABLE] = {rule_deadline_unreachable, false, {M(APP_CPU)}, 0, {
	"choose a longer deadline, do less per frame, or use faster hardware",
	"do not expect overlapping stages to help: the latency does not fall"}},
[CAUSE_PROFILER_OVERHEAD] = {rule_profiler_overhead, false,
	{M(DAEMON_CPU), M(CPU), M(APP_RUN_DELAY)}, BOUND | PAUSED | BIT(SCHEDULING), {
	"instrument fewer or larger stages", "raise [sampling] interval",
	"disable sources that are not needed"}},
[CAUSE_STOPPED] = {rule_stopped, false, {M(APP_STOPPED), M(APP_CPU), M(APP_IODELAY)}, 0, {
	"check for SIGSTOP, debuggers, frozen control groups and suspends",
	"check for locks and drivers that all stages wait for"}},
[CAUSE_UNEXPLAINED] = {NULL, false, {M(TEMPERATURE), M(CPU), M(PRESSURE_CPU), M(PRESSURE_IO)}, 0, {
	"run edgeprofctl why for the worst frame",
	"measure CPU time of stages, and add stages where time is spent"}},
};
