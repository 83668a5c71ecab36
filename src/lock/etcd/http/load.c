/* lock/etcd/http/load.c - loading the module that speaks HTTP. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/http/http.h"
#include "hf/sys/program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct hf_http_module *loaded;

#ifdef HF_STATIC
static int load(struct hf_err *err)
{
	return FAIL(err, -ENOTSUP, "load", HF_HTTP_MODULE, "a static holdfast cannot load it; use a dynamic build");
}
#else
static int load(struct hf_err *err)
{
	const struct hf_http_module *module;
	AUTO_FD fd = -1;
	char path[40];
	void *handle;
	int r = hf_program_open(HF_HTTP_MODULE, "a store etcds: needs this module, which is built only with libcurl",
				&fd, err);

	if (r < 0)
		return r;
	/* What was checked is what is loaded. It stays: libcurl and OpenSSL do not like to be unloaded. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle)
		return FAIL(err, -ENOEXEC, "load", HF_HTTP_MODULE, "%.200s", dlerror());
	module = dlsym(handle, HF_HTTP_SYMBOL);
	if (!module || module->version != HF_HTTP_VERSION)
		return FAIL(err, -ENOEXEC, "load", HF_HTTP_MODULE, "it belongs to another version of Holdfast");
	loaded = module;
	return 0;
}
#endif

int hf_http_load(const struct hf_http_module **ret, struct hf_err *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&mutex);
	if (!loaded)
		r = load(err);
	if (r == 0)
		*ret = loaded;
	(void)pthread_mutex_unlock(&mutex);
	return r;
}
