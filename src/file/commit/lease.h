/*
 * file/commit/lease.h - a read lease (fcntl F_SETLEASE) on the old file while it is replaced.
 *
 * A process that has the file open for writing would go on writing into a file that has no
 * name any more, and what it saves would be lost. The kernel gives a read lease only while
 * there is no such process, and makes one that opens the file for writing wait until the
 * lease is given back. A lease that was asked back says that one waits.
 *
 * Not every file system has leases, and only the owner of the file (or CAP_LEASE) gets one.
 * Then the version checks alone decide.
 */
#ifndef FILE_COMMIT_LEASE_H
#define FILE_COMMIT_LEASE_H

#include "hf/file/file.h"

/*
 * Takes the lease, waiting file->writer_left_ns for processes that have the file open for
 * writing. Returns 0, also where there are no leases; HF_E_CHANGED.
 */
int hf_lease_take(struct hf_file *file, struct hf_err *err);

/* 1 while no process has asked to write into the old file. Always 1 without a lease. */
int hf_lease_holds(const struct hf_file *file);

/* Gives it back: processes that wait go on. */
void hf_lease_drop(struct hf_file *file);

#endif
