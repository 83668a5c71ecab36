/* file/block/block.h - the content of a file with one block replaced, added or taken out. */
#ifndef FILE_BLOCK_BLOCK_H
#define FILE_BLOCK_BLOCK_H

#include "hf/file/file.h"

/* As hf_file_block, after the file was read. */
int hf_block_write(struct hf_file *file, const struct hf_block *block, struct hf_err *err);

#endif
