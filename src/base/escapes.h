/*
 * base/escapes.h - finds escape sequences in terminal output, and removes them from text.
 *
 *     struct hf_escapes e = { 0 };
 *     switch (hf_escape_take(&e, c)) {
 *     case HF_ESCAPE_TEXT:   c is text
 *     case HF_ESCAPE_INSIDE: c is part of an unfinished sequence
 *     case HF_ESCAPE_END:    c ends the sequence e.kept[0..e.len) of kind e.kind
 *     }
 *
 * Any bytes are accepted, in pieces of any size. A sequence begins with ESC. A byte such as 0x9b begins none, because
 * it may be part of a UTF-8 character. CAN and SUB cancel a sequence, and ESC inside a sequence begins another one.
 * HF_ESCAPE_KEPT bytes of a sequence are kept. A sequence of HF_ESCAPE_LONGEST bytes is cancelled, so that a missing
 * end hides a bounded amount of text.
 */
#ifndef BASE_ESCAPES_H
#define BASE_ESCAPES_H

#include <stddef.h>

#define HF_ESCAPE_KEPT    4096
#define HF_ESCAPE_LONGEST 65536

enum hf_escape_step {
	HF_ESCAPE_TEXT,
	HF_ESCAPE_INSIDE,
	HF_ESCAPE_END,
};

enum hf_escape_kind {
	HF_ESCAPE_NONE = 0, /* cancelled */
	HF_ESCAPE_SHORT,    /* ESC 7 */
	HF_ESCAPE_CSI,      /* ESC [ … letter */
	HF_ESCAPE_OSC,      /* ESC ] … BEL or ESC \ */
	HF_ESCAPE_STRING,   /* ESC P, ESC X, ESC ^, ESC _ … */
};

struct hf_escapes {
	enum { HF_ESCAPES_TEXT, HF_ESCAPES_ESCAPE, HF_ESCAPES_CSI, HF_ESCAPES_STRING, HF_ESCAPES_STRING_ESCAPE } state;
	enum hf_escape_kind kind; /* of the last complete sequence */
	size_t len;               /* of `kept` */
	size_t total;             /* of the sequence; more than `len` if `kept` is truncated */
	char kept[HF_ESCAPE_KEPT]; /* from its ESC on */
};

enum hf_escape_step hf_escape_take(struct hf_escapes *escapes, char c);

/* The text of a complete OSC, without its frame. NULL if it is truncated or another kind of sequence. */
const char *hf_escape_osc(const struct hf_escapes *escapes, size_t *ret_len);

/*
 * Copies `len` bytes of `text` as one line of plain text. Escape sequences are removed, also after a C1
 * character. A sequence that moves the cursor becomes a space after other text. Other control characters, overrides of
 * the text direction and bytes outside UTF-8 become '?'. Truncates between characters to `cap` bytes with the NUL.
 * Returns the number of bytes written.
 */
size_t hf_plain_text(char *out, size_t cap, const char *text, size_t len);

#endif
