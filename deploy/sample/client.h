/*
 * The shop's command line: `toc-shop order create 42 tea 2 5s` and the like,
 * against the shop at TOC_SHOP.
 *
 * Threads: main. Blocks.
 */
#ifndef TOC_SAMPLE_CLIENT_H
#define TOC_SAMPLE_CLIENT_H

extern const char client_help[];

/* argv[0] is the first word of the command. Returns the exit code: 0, 1 when
 * the shop answered with an error or could not be reached, 2 for wrong usage.
 */
int client_main(int argc, char **argv);

#endif
