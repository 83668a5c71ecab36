/*
 * helper/impostor.c - what could stand in the place of holdfast-supervise: says hello with $MAGIC and $VERSION (empty: says
 * nothing), then notes in the file $GOT whether it was sent anything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hf/run/supervisor/order.h"

int main(void)
{
	struct hf_hello hello = { .news_size = sizeof(struct hf_link_news) };
	const char *magic = getenv("MAGIC"), *version = getenv("VERSION"), *path = getenv("GOT");
	FILE *got = path ? fopen(path, "w") : NULL;
	char byte;

	if (!magic || !version || !got)
		return 98;
	(void)snprintf(hello.magic, sizeof(hello.magic), "%s", magic);
	(void)snprintf(hello.version, sizeof(hello.version), "%s", version);
	if (fork() != 0)
		_exit(0);
	if (magic[0] && write(STDIN_FILENO, &hello, sizeof(hello)) != sizeof(hello))
		return 98;
	fputs(magic[0] && read(STDIN_FILENO, &byte, 1) > 0 ? "order\n" : "nothing\n", got);
	return fclose(got);
}
