/* run/supervisor/program.c - where holdfast-supervise is. */
#include "hf/run/supervisor/order.h"
#include "hf/sys/program.h"

int hf_supervise_open(int *ret_fd, struct hf_err *err)
{
	return hf_program_open(HF_SUPERVISE_PROGRAM, "a session in the background needs this program", ret_fd, err);
}
