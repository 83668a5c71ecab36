/*
 * base/escapes.h - the escape sequences in what a program writes to a terminal: where they begin and end, and text without them.
 *
 *     struct hf_escapes e = { 0 };
 *     switch (hf_escape_take(&e, c)) {
 *     case HF_ESCAPE_TEXT:   c belongs to no sequence
 *     case HF_ESCAPE_INSIDE: c belongs to one that has not ended
 *     case HF_ESCAPE_END:    c ended it: e.kept[0..e.len), e.kind
 *     }
 *
 * The bytes may come in pieces of any size and hold anything. A sequence begins with ESC: a byte such as 0x9b may be part of any
 * character and begins nothing. CAN and SUB end a sequence without effect, and ESC inside one begins the next. Of a sequence at most
 * HF_ESCAPE_KEPT bytes are kept. After HF_ESCAPE_LONGEST bytes it counts as ended, so that one without an end does not hide what follows.
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
	HF_ESCAPE_NONE = 0, /* given up: CAN, SUB, too long */
	HF_ESCAPE_SHORT,    /* ESC 7 */
	HF_ESCAPE_CSI,      /* ESC [ … letter */
	HF_ESCAPE_OSC,      /* ESC ] … BEL or ESC \ */
	HF_ESCAPE_STRING,   /* ESC P, ESC X, ESC ^, ESC _ … */
};

struct hf_escapes {
	enum { HF_ESCAPES_TEXT, HF_ESCAPES_ESCAPE, HF_ESCAPES_CSI, HF_ESCAPES_STRING, HF_ESCAPES_STRING_ESCAPE } state;
	enum hf_escape_kind kind; /* of the sequence that ended last */
	size_t len;               /* of `kept` */
	size_t total;             /* of the sequence; more than `len`: it was cut */
	char kept[HF_ESCAPE_KEPT]; /* from its ESC on */
};

enum hf_escape_step hf_escape_take(struct hf_escapes *escapes, char c);

/* What is between "ESC ]" and its end, of an OSC that has ended. NULL: it was cut, or is no OSC. */
const char *hf_escape_osc(const struct hf_escapes *escapes, size_t *ret_len);

/*
 * Copies `len` bytes of `text` as one line of plain text: without escape sequences (C1 characters begin them too), and with '?' for each
 * other control character, each character that turns the direction of text, and each byte that is not UTF-8. A sequence that moves the cursor becomes a space where none is. Takes as many characters as fit into
 * `cap` with the final NUL. Returns how many bytes were written.
 */
size_t hf_plain_text(char *out, size_t cap, const char *text, size_t len);

#endif
