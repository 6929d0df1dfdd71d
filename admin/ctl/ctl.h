/*
 * tocctl, the command line: what all of its commands share.
 *
 * One table (commands.c) says which commands there are, with their arguments
 * and flags; parsing, help, shell completion and docs/TOCCTL.md come from it.
 * A command is a function that is given a struct ctl, writes to its streams
 * and returns how the process ends.
 *
 * Everything that came over the wire is untrusted text: it reaches a terminal
 * only through ctl_safe (or as JSON and YAML, which escape too).
 *
 * Ownership: the caller's, and ctl_done's in the end. Threads: one. Blocking:
 * commands, for as long as --timeout per call.
 */
#ifndef TOC_ADMIN_CTL_CTL_H
#define TOC_ADMIN_CTL_CTL_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/base/str.h"
#include "common/clock/clock.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How the process ends. Scripts rely on the numbers: never change one. */
#define CTL_EXIT_MAP(X)                                                 \
    X(OK, 0, "done")                                                    \
    X(FAILED, 1, "failed, in a way that no other number names")         \
    X(USAGE, 2, "the command line or the request is not valid")         \
    X(NOT_FOUND, 3, "no such task")                                     \
    X(CONFLICT, 4,                                                      \
      "too late, ended before, changed meanwhile, or the key is taken") \
    X(UNAVAILABLE, 5,                                                   \
      "no answer: not reachable, overloaded, or past the timeout")

enum ctl_exit {
#define X(name, number, text) CTL_##name = number,
    CTL_EXIT_MAP(X)
#undef X
};

enum ctl_output {
    CTL_OUTPUT_TABLE,
    CTL_OUTPUT_WIDE,
    CTL_OUTPUT_JSON,
    CTL_OUTPUT_YAML,
    CTL_OUTPUT_ID,
};

struct ctl;
struct ctl_command;
struct ctl_flag;

/* One unary call; as toc_rpc_call, and replaced in tests. */
typedef enum toc_status ctl_transport_fn(
    void *arg, const char *address, const ProtobufCServiceDescriptor *service,
    const char *method, const ProtobufCMessage *request, int64_t timeout_ms,
    struct toc_arena *arena, ProtobufCMessage **ret_reply,
    struct toc_str *ret_details, struct toc_error *reterr);

struct ctl_value {
    const struct ctl_flag *flag;
    const char *text; /* "" for a flag without value */
};

#define CTL_ADDRESSES_MAX 64

struct ctl_addresses {
    const char *at[CTL_ADDRESSES_MAX];
    size_t n;
};

struct ctl {
    FILE *in, *out, *err;
    const struct toc_clock *clk;
    ctl_transport_fn *transport;
    void *transport_arg;
    void (*sleep_until)(struct toc_mono until); /* for --rate */
    struct toc_arena keep;                      /* as long as the process */
    struct toc_arena arena; /* replies, scratch; lists reset it page by page */
    /* Parsed. */
    const struct ctl_command *command;
    const char **args;
    size_t n_args;
    struct ctl_value *values;
    size_t n_values;
    enum ctl_output output;
    int64_t timeout_ms;                      /* 0: the command's own default */
    struct ctl_addresses schedulers, admins; /* found at first use */
};

/* Runs one command line; argv[0] is the program. */
enum ctl_exit ctl_run(struct ctl *ctl, int argc, char **argv);
void ctl_done(struct ctl *ctl); /* frees what it holds */

/* ---- what commands use ---------------------------------------------- */

/* The flag's (last) value; NULL when it was not given. */
const char *ctl_flag(const struct ctl *ctl, const char *name);
bool ctl_has(const struct ctl *ctl, const char *name);

/* "error: ..." on stderr, then "hint: ..." unless NULL; returns `code`. */
__attribute__((format(printf, 4, 5))) enum ctl_exit ctl_fail(struct ctl *ctl,
                                                             enum ctl_exit code,
                                                             const char *hint,
                                                             const char *format,
                                                             ...);
/* A remark on stderr. */
__attribute__((format(printf, 2, 3))) void ctl_note(struct ctl *ctl,
                                                    const char *format, ...);
int64_t ctl_now_ms(const struct ctl *ctl);
/* The worse of two ends: the first that is not OK. */
enum ctl_exit ctl_worse(enum ctl_exit a, enum ctl_exit b);

#endif
