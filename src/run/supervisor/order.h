/*
 * run/supervisor/order.h - a session in the background is supervised by another program, libexec/holdfast-supervise.
 *
 * So the caller's memory is neither copied nor run by a second process: other threads, their locks, and an
 * interpreter such as Python's do no harm. The caller and the program speak through a socket pair (SOCK_STREAM):
 *
 *     program to caller   struct hf_hello: it is the program that was meant, and of the same version
 *     caller to program   struct hf_order_head with the descriptor of the state directory, then the order; with input, its descriptor between
 *     program to caller   struct hf_link_news (keeper/link.h): the command runs, or why it does not
 *
 * The order is JSON: {"v":1,"name":…,"state":…,"resume":false,"wait_ns":0,"resume_token":0, then as in options_json.h}. Nothing of it stands
 * in argv or in the environment, where other processes could read it.
 */
#ifndef RUN_SUPERVISOR_ORDER_H
#define RUN_SUPERVISOR_ORDER_H

#include "hf/run/keeper/link.h"
#include "hf/base/buf.h"

#define HF_SUPERVISE_PROGRAM "holdfast-supervise"

#define HF_HELLO_MAGIC "hf-supervise 1"

struct hf_hello {
	char magic[16];
	char version[24];   /* hf_version(): a library and a program of two versions do not understand each other */
	uint32_t news_size; /* of struct hf_link_news, which goes over as it is */
};

struct hf_order_head {
	uint64_t len;       /* of the order, which follows */
	uint32_t has_input; /* before it one byte comes, and with it the descriptor of the command's standard input */
};

/* An order, read. */
struct hf_order {
	char *name;
	char *state_path;
	struct hf_run_opts o; /* all that it points to is owned here */
};

void hf_order_done(struct hf_order *order);

void hf_order_add_json(struct hf_buf *out, const char *name, const char *state_path, const struct hf_run_opts *given);

/* 0; HF_E_FORMAT when it is none; -EINVAL or HF_E_NAME as hf_options_check. */
int hf_order_read(const char *text, size_t len, struct hf_order *ret, struct hf_err *err);

/*
 * Opens the program: in $HOLDFAST_LIBEXEC, an absolute directory, if that is set; else in ../libexec beside
 * the object that this code is in (program or shared library: a build that is not installed, a moved prefix), else
 * where it was to be installed. It must belong to root, to this user or to the owner of that object, and be
 * writable for its owner alone (L12). 0; -ENOENT, -EINVAL, HF_E_UNTRUSTED, -errno.
 */
int hf_supervise_open(int *ret_fd, struct hf_err *err);

/* The caller's side, whole: starts it, gives the order, waits for the news. 0, or -errno with `err`: there are none. */
int hf_detach(struct hf_state *state, const char *name, const struct hf_run_opts *given, struct hf_link_news *ret,
	      struct hf_err *err);

/* Something that is done with a stage (run/stage.h), and a layer above that has one for every session. */
struct hf_stage;
typedef int hf_with_stage_fn(void *arg, const struct hf_stage *stage);
typedef int hf_stager_fn(struct hf_state *state, const char *name, hf_with_stage_fn *fn, void *arg);

/*
 * The program's side, whole. `fd` is the socket; all other descriptors are the caller's and are closed. `stager` makes the session's
 * stage; NULL: it has none. The exit status.
 */
int hf_supervise_main(int fd, hf_stager_fn *stager);

#endif
