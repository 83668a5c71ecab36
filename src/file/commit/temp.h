/*
 * file/commit/temp.h - the temporary file beside the target.
 *
 * It has one of a few fixed names, so that what a crash left is found without reading the
 * directory. Its writer has it flocked. One that can be flocked and has no intent
 * (intent.h) is what a dead process was writing, and goes.
 */
#ifndef FILE_COMMIT_TEMP_H
#define FILE_COMMIT_TEMP_H

#include "hf/file/file.h"

#define HF_TEMP_SLOTS 4

/* Names of a slot: the temporary file and its intent. */
void hf_temp_name(const struct hf_file *file, int slot, char out[NAME_MAX + 1]);
void hf_temp_intent_name(const struct hf_file *file, int slot, char out[NAME_MAX + 1]);

/* Name of the entry that keeps the old version until it is a backup. */
void hf_temp_old_name(const struct hf_file *file, char out[NAME_MAX + 1]);

/* Makes the temporary file: new_fd, slot and temp. `mode` is its first mode (umask applies). */
int hf_temp_make(struct hf_file *file, mode_t mode, struct hf_err *err);

/*
 * Flocks what has that name in the directory, if it is a regular file of ours that no
 * process writes. Returns the descriptor, or -1.
 */
int hf_temp_claim(const struct hf_file *file, const char *name);

/* Removes what a crash left in a slot without an intent. */
void hf_temp_sweep(const struct hf_file *file, int slot);

#endif
