/*
 * run/keeper/output/program.h - what a program says of its own state in the output to its terminal.
 *
 * The Program Status Protocol: "OSC 7501 ; state=blocked:app=codex:kind=permission:msg=BASE64 ST". A program may have several records,
 * told apart by `id`; a new report replaces the record. "OSC 7501 ; ? ST" asks whether the terminal understands it. Where a program
 * sends no report, its title (OSC 0 or 2) counts, if it begins with a sign that one of the clients uses.
 *
 * Pure, and of fixed size whatever the bytes are: HF_PROGRAM_RECORDS records, of which the one that was reported longest ago goes first.
 */
#ifndef RUN_KEEPER_OUTPUT_PROGRAM_H
#define RUN_KEEPER_OUTPUT_PROGRAM_H

#include <stdint.h>

#include "hf/base/escapes.h"
#include "holdfast/clock.h"
#include "holdfast/run.h"

#define HF_PROGRAM_RECORDS 64
#define HF_PROGRAM_ID_MAX  128
#define HF_PROGRAM_ANSWERS 16 /* a program asks once; one that asks again and again may be our own answer, echoed */

struct hf_program_record {
	char id[HF_PROGRAM_ID_MAX + 1]; /* "": the program itself */
	char text[HF_SAYS_TEXT_MAX + 1];
	enum hf_says state;
	uint64_t order;
};

struct hf_program {
	/* The result. */
	enum hf_says state;
	char text[HF_SAYS_TEXT_MAX + 1]; /* its message; "" */
	struct hf_boot since;            /* when that began */
	int asked;                       /* questions to be answered now; the caller sets it back */

	unsigned answered;
	struct hf_escapes escapes;
	struct hf_program_record title;
	size_t n;
	uint64_t order;
	struct hf_program_record records[HF_PROGRAM_RECORDS];
};

/* Takes output. 1 when state or text changed. */
int hf_program_take(struct hf_program *program, const char *bytes, size_t n);

/* The answer to the question: the same bytes. */
#define HF_PROGRAM_ANSWER "\033]7501;?\033\\"

#endif
