/* file/block/style.h - how a marker is written as a comment, and which comment a file type has. */
#ifndef FILE_BLOCK_STYLE_H
#define FILE_BLOCK_STYLE_H

#include <stddef.h>

#include "holdfast/file.h"

/* Opening and closing of the style's comment; the closing may be "". NULL: no such style. */
const char *hf_style_open(enum hf_block_style style);
const char *hf_style_close(enum hf_block_style style);

/* By the file's name. HF_STYLE_AUTO: the type is known to have no comments (JSON). */
enum hf_block_style hf_style_of(const char *leaf);

/* Does the type have fenced code (Markdown and its relatives)? */
int hf_style_has_fences(const char *leaf);

/* An id: 1 to HF_BLOCK_ID_MAX letters, digits, '_', '-', '.'. Length of the longest one at `s`. */
size_t hf_style_id_length(const char *s, size_t len);

#endif
