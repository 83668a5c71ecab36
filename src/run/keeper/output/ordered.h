/*
 * run/keeper/output/ordered.h - two pipes that are read in the order in which they were written.
 *
 * Two streams that are to be told apart need two pipes, and two pipes do not say which was written first. But each write to a
 * pipe with O_ASYNC queues a real-time signal that names the pipe (F_SETSIG), and such signals keep their order. With O_DIRECT each
 * write is a packet of its own. So a signal means: now one write of that pipe. Writes of several pages, and a writer that opened
 * the pipe anew without O_DIRECT, are taken whole as far as they are there; then the order is as good as the signals that are left.
 * A writer that finds its pipe full signals once more before it sleeps. So the order is exact while the command is at most a pipe ahead
 * of the keeper (256 writes, or 16 where the user has too many large pipes); beyond that, neighbours may change places.
 */
#ifndef RUN_KEEPER_OUTPUT_ORDERED_H
#define RUN_KEEPER_OUTPUT_ORDERED_H

/* Makes two pipes: *ret_order is to be polled and asked which comes next. 0, or -errno where the kernel does not do this. */
int hf_ordered_open(int from[2], int to[2], int *ret_order);

enum hf_ordered {
	HF_ORDERED_NONE = -1, /* nothing was written since */
	HF_ORDERED_LOST = -2, /* signals were lost: from now on the order is not known */
};

/* Which descriptor was written next, or one of the above. */
int hf_ordered_next(int order);

#endif
