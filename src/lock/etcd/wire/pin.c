/* lock/etcd/wire/pin.c - the id of the cluster, in the state directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/wire/pin.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

#define ROOM "stores"

/* What is remembered; "": nothing. 0 or a failure. */
static int read_pin(struct hf_etcd *etcd, char out[HF_ETCD_CLUSTER_MAX], struct hf_err *err)
{
	AUTO_FD room = -1, fd = -1;
	ssize_t n;
	int r = hf_state_subdir(etcd->state, ROOM, 0, &room, NULL);

	out[0] = '\0';
	if (r < 0)
		return r == -ENOENT ? 0 : hf_fail_sys(err, -r, "open", ROOM);
	r = hf_open_private(room, etcd->series, O_RDONLY, etcd->series, &fd, NULL, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	n = hf_read_all(fd, out, HF_ETCD_CLUSTER_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

static int write_pin(struct hf_etcd *etcd, const char *cluster, struct hf_err *err)
{
	AUTO_FD room = -1;
	char temp[64], line[HF_ETCD_CLUSTER_MAX + 1];
	int r = hf_state_subdir(etcd->state, ROOM, 1, &room, err);

	/* A directory that is only read changes nothing here. */
	if (r < 0)
		return r == -EROFS ? 0 : r;
	(void)snprintf(temp, sizeof(temp), ".%d.%d.tmp", (int)getpid(), (int)gettid());
	(void)snprintf(line, sizeof(line), "%s\n", cluster);
	/* Never over what another process has just seen. */
	r = hf_replace_file(room, etcd->series, temp, line, strlen(line), HF_REPLACE_NEW);
	return r == 0 || r == -EROFS ? 0 : r == -EEXIST ? 1 : hf_fail_sys(err, -r, "write", ROOM);
}

static int refuse(const struct hf_etcd *etcd, const char *known, const char *cluster, struct hf_err *err)
{
	return FAIL(err, HF_E_UNTRUSTED, "cluster", etcd->config.endpoints[0],
		    "its cluster id is %s, not %s: it was created again or restored, or the URL names servers of two clusters; "
		    "'holdfast doctor --accept-cluster' accepts it",
		    cluster, known);
}

static int remember(struct hf_etcd *etcd, const char *cluster, struct hf_err *err)
{
	char known[HF_ETCD_CLUSTER_MAX];
	int r = read_pin(etcd, known, err);

	if (r == 0 && !known[0])
		r = write_pin(etcd, cluster, err);
	if (r == 1)
		r = read_pin(etcd, known, err);
	if (r < 0)
		return r;
	if (known[0] && strcmp(known, cluster) != 0)
		return refuse(etcd, known, cluster, err);
	hf_copy_text(etcd->cluster, sizeof(etcd->cluster), cluster);
	return 0;
}

int hf_pin_check(struct hf_etcd *etcd, const char *cluster, struct hf_err *err)
{
	int r = 0;

	if (!cluster[0])
		return 0;
	(void)pthread_mutex_lock(&etcd->mutex);
	if (!etcd->cluster[0])
		r = remember(etcd, cluster, err);
	else if (strcmp(etcd->cluster, cluster) != 0)
		r = refuse(etcd, etcd->cluster, cluster, err);
	(void)pthread_mutex_unlock(&etcd->mutex);
	return r;
}

void hf_pin_forget(struct hf_etcd *etcd)
{
	AUTO_FD room = -1;

	(void)pthread_mutex_lock(&etcd->mutex);
	etcd->cluster[0] = '\0';
	(void)pthread_mutex_unlock(&etcd->mutex);
	if (hf_state_subdir(etcd->state, ROOM, 0, &room, NULL) == 0)
		(void)unlinkat(room, etcd->series, 0);
}
