/*
 * base/buf.h - a growing byte buffer with a sticky error.
 *
 *     AUTO(hf_buf_done) struct hf_buf b = HF_BUF_INIT;
 *     hf_buf_add_text(&b, "{\"seq\":");
 *     hf_buf_add_u64(&b, seq);
 *     if (b.err)
 *             return b.err;                 one check for the whole chain
 *
 * `s` is never NULL and always ends with NUL, which `len` does not count. After
 * a failed allocation (or past HF_BUF_LIMIT) `err` is set, the content stays as
 * it was before that append, and further appends do nothing.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct hf_buf {
	char *s;
	size_t len;
	size_t cap; /* 0: `s` is the shared empty string, not ours to write */
	int err;    /* 0, -ENOMEM or -E2BIG */
};

/* No buffer of ours has a reason to be larger; a bug stops here. */
#define HF_BUF_LIMIT ((size_t)256 << 20)

extern char hf_buf_empty[1];
#define HF_BUF_INIT { hf_buf_empty, 0, 0, 0 }

/* Frees and leaves the empty value. */
void hf_buf_done(struct hf_buf *b);

/* Empties it, keeps the memory, clears the error. */
void hf_buf_reset(struct hf_buf *b);

/* Room for `more` further bytes and the NUL. Returns `err`. */
int hf_buf_reserve(struct hf_buf *b, size_t more);

void hf_buf_add(struct hf_buf *b, const void *bytes, size_t len);
void hf_buf_add_text(struct hf_buf *b, const char *text);
void hf_buf_add_char(struct hf_buf *b, char c);
void hf_buf_add_u64(struct hf_buf *b, uint64_t value);
void hf_buf_add_i64(struct hf_buf *b, int64_t value);
void hf_buf_add_format(struct hf_buf *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Exactly 16 lower-case hexadecimal digits. */
void hf_buf_add_hex64(struct hf_buf *b, uint64_t value);

/*
 * A JSON string with its quotes. Text that is not UTF-8 stays readable: each
 * byte that does not fit becomes U+FFFD. Takes at most `max` bytes of `text`
 * and cuts between characters; returns 1 when it cut, else 0.
 */
int hf_buf_add_json(struct hf_buf *b, const char *text, size_t len, size_t max);

/*
 * `text` for a terminal: control bytes and bytes that are not UTF-8 are shown
 * as \xNN, so that stored data never steers the reader's terminal.
 */
void hf_buf_add_shown(struct hf_buf *b, const char *text, size_t len);

/* Standard base64 with padding. */
void hf_buf_add_base64(struct hf_buf *b, const void *bytes, size_t len);

/* Appends the decoded bytes of `text`. Returns 0, or -EINVAL for text that hf_buf_add_base64 does not write. */
int hf_base64_read(const char *text, size_t len, struct hf_buf *ret);

/* Length (1 to 4) of the UTF-8 character at `s`, or 0 when there is none. */
size_t hf_utf8_char(const unsigned char *s, size_t len);

/*
 * Appends the word for a shell to read back, for a command in a message between single quotes: plain, in double
 * quotes, or behind "--" if it begins with "-". Put it last in the command.
 */
void hf_buf_add_shell_word(struct hf_buf *b, const char *word);

/* For a name of at most 88 bytes. */
#define HF_SHELL_WORD_MAX 192

/* Writes such a word to `out` and returns it. */
const char *hf_shell_word(const char *name, char out[HF_SHELL_WORD_MAX]);

#endif
