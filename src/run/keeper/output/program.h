/*
 * run/keeper/output/program.h - finds the reports of a program about its own state in its terminal output.
 *
 * Reports use the Program Status Protocol: "OSC 7501 ; state=blocked:app=codex:kind=permission:msg=BASE64 ST". A program
 * may have several records with different ids. A new report replaces the record of its id. With "OSC 7501 ; ? ST" a
 * program asks whether the terminal supports the protocol. If a program sends no report, its title (OSC 0 or 2) is used
 * if it begins with a sign of a known client.
 *
 * Pure. The memory is fixed: the oldest of HF_PROGRAM_RECORDS records is replaced.
 */
#ifndef RUN_KEEPER_OUTPUT_PROGRAM_H
#define RUN_KEEPER_OUTPUT_PROGRAM_H

#include <stdint.h>

#include "hf/base/escapes.h"
#include "holdfast/clock.h"
#include "holdfast/run.h"

#define HF_PROGRAM_RECORDS 64
#define HF_PROGRAM_ID_MAX  128
#define HF_PROGRAM_ANSWERS 16 /* programs ask once; a terminal that echoes the answer would repeat it endlessly */

struct hf_program_record {
	char id[HF_PROGRAM_ID_MAX + 1]; /* "" for the program itself */
	char text[HF_ACTIVITY_TEXT_MAX + 1];
	enum hf_activity state;
	uint64_t order;
};

struct hf_program {
	enum hf_activity state;
	char text[HF_ACTIVITY_TEXT_MAX + 1]; /* its message, or "" */
	struct hf_boot since;            /* since when */
	int asked;                       /* queries to answer; the caller resets it */

	unsigned answered;
	struct hf_escapes escapes;
	struct hf_program_record title;
	size_t n;
	uint64_t order;
	struct hf_program_record records[HF_PROGRAM_RECORDS];
};

/* Parses output. Returns 1 if state or text changed. */
int hf_program_take(struct hf_program *program, const char *bytes, size_t n);

/* The answer to a query: the same bytes. */
#define HF_PROGRAM_ANSWER "\033]7501;?\033\\"

#endif
