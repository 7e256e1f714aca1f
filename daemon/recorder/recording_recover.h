/* SPDX-License-Identifier: Apache-2.0 */
/* recording_recover.h: completes a recording whose daemon was killed. Blocking; at start. */
#pragma once

/* Makes each NAME.jsonl.new of the folder a recording of the complete replies that it holds, with a
 * last line that says so. One that has no reply stays as it is, for recording_folder_scan(). */
void recording_folder_recover(int folder);
