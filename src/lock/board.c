/* lock/board.c - the notice board: arguments, and the store that has one. */
#include <errno.h>
#include <string.h>

#include "hf/base/fail.h"
#include "hf/lock/board.h"
#include "hf/lock/context.h"

static int find(struct hf_locks *locks, const char *name, const struct hf_board_ops **ret, struct hf_err *err)
{
	int r = hf_locks_check(locks, name, err);

	if (r < 0)
		return r;
	*ret = locks->context->store->board;
	return *ret ? 0 : FAIL(err, -ENOTSUP, "board", name, "this store serves only this machine");
}

int hf_board_is_there(struct hf_locks *locks)
{
	return locks->context->store->board != NULL;
}

int hf_board_put(struct hf_locks *locks, const char *name, uint64_t token, const char *text, struct hf_err *err)
{
	const struct hf_board_ops *board;
	int r = find(locks, name, &board, err);

	if (r == 0 && strlen(text) >= HF_BOARD_TEXT_MAX)
		r = FAIL(err, -E2BIG, "board", name, "at most %d bytes", HF_BOARD_TEXT_MAX - 1);
	return r < 0 ? r : board->put(locks->context->store, name, token, text, err);
}

int hf_board_ask(struct hf_locks *locks, const char *name, uint64_t token, const char *text, struct hf_err *err)
{
	const struct hf_board_ops *board;
	int r = find(locks, name, &board, err);

	return r < 0 ? r : board->ask(locks->context->store, name, token, text, err);
}

int hf_board_read(struct hf_locks *locks, const char *name, struct hf_board_entry *ret, struct hf_err *err)
{
	const struct hf_board_ops *board;
	int r = find(locks, name, &board, err);

	return r < 0 ? r : board->read(locks->context->store, name, ret, err);
}

int hf_board_list(struct hf_locks *locks, hf_board_fn *fn, void *arg, struct hf_err *err)
{
	const struct hf_board_ops *board;
	int r = find(locks, "board", &board, err);

	return r < 0 ? r : board->list(locks->context->store, fn, arg, err);
}

int hf_board_wait(struct hf_locks *locks, const struct hf_board_entry *entry, int64_t ns, struct hf_err *err)
{
	const struct hf_board_ops *board;
	int r = find(locks, entry->name, &board, err);

	return r < 0 ? r : board->await(locks->context->store, entry, ns, err);
}

int hf_board_clean(struct hf_locks *locks, int64_t quiet_ns, struct hf_err *err)
{
	const struct hf_board_ops *board;
	int r = find(locks, "board", &board, err);

	return r < 0 ? r : board->clean(locks->context->store, quiet_ns, err);
}
