/* lock/holder.c - a holder in words. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/lock/holder.h"
#include "hf/sys/io.h"

enum hf_liveness hf_holder_liveness(int verdict)
{
	return verdict == 0 ? HF_ALIVE : verdict == HF_E_UNKNOWN ? HF_UNKNOWN : HF_DEAD;
}

void hf_holder_text(const struct hf_holder *holder, char *out, size_t cap)
{
	static const char *const words[] = { [HF_ALIVE] = "alive",
					     [HF_DEAD] = "dead",
					     [HF_UNKNOWN] = "unknown" };
	char comm[20] = "", path[40], held[32] = "";
	int64_t for_ns = hf_wall_now().ns - holder->since.ns;
	AUTO(hf_buf_done) struct hf_buf age = HF_BUF_INIT;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)holder->id.pid);
	n = holder->liveness == HF_ALIVE ? hf_read_file(AT_FDCWD, path, comm, sizeof(comm) - 1) : 0;
	comm[n > 0 ? n : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	hf_buf_add_duration(&age, for_ns);
	if (holder->since.ns > 0 && for_ns >= 0)
		(void)snprintf(held, sizeof(held), " for %.20s", age.s);
	(void)snprintf(out, cap, "pid %d%s%.16s%s%s%s%s, %s: %s", (int)holder->id.pid,
		       comm[0] ? " (" : "", comm, comm[0] ? ")" : "", holder->host[0] ? " on " : "", holder->host, held,
		       words[holder->liveness], holder->evidence);
}
