/*
 * A whole cluster for end-to-end tests: real servers and the real binaries,
 * started by deploy/local/toc in a folder of its own.
 *
 * Make it in an unchecked fixture (once for the program, in the parent, which
 * must not touch gRPC: check forks each test). Everything here ends the test
 * program with a message when it fails.
 */
#ifndef TOC_TESTS_SUPPORT_CLUSTER_H
#define TOC_TESTS_SUPPORT_CLUSTER_H

#include "common/base/arena.h"
#include "common/rpc/client.h"
#include "toc/v1/admin.pb-c.h"
#include "toc/v1/timeout.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster {
    char home[256];
    char schedulers[8][64]; /* addresses, in the order of their names */
    size_t n_schedulers;
    char admin[64];
    char shop[64];
};

/* name: of the folder; roles as given, no shop demo. */
void cluster_up(struct cluster *cluster, const char *name, int schedulers,
                int executors);
void cluster_destroy(struct cluster *cluster);
/* `deploy/local/toc <args> --home ...`; returns its exit code. */
__attribute__((format(printf, 2, 3))) int cluster_toc(
    const struct cluster *cluster, const char *format, ...);
/* The binary `name` of the release build, with the cluster's environment;
 * output goes to the file when not NULL. Returns the exit code. */
__attribute__((format(printf, 3, 4))) int cluster_run(
    const struct cluster *cluster, const char *output, const char *format, ...);
/* The pid of a process of the cluster, or 0. */
int cluster_pid(const struct cluster *cluster, const char *name);
/* Has the process ended? One whose parent has not looked yet counts as such. */
bool cluster_is_gone(int pid);

/* ---- calling it ------------------------------------------------------ */

struct caller {
    struct toc_rpc_client *client;
    struct toc_arena arena; /* replies; reset it now and then */
    struct toc_str details; /* packed google.rpc.Status of the last failure */
    struct toc_error error; /* of the last call */
};

void caller_init(struct caller *caller);
void caller_done(struct caller *caller);

/* One call of toc.v1.TimeoutService; *ret_reply on TOC_OK. */
enum toc_status caller_call(struct caller *caller, const char *address,
                            const char *method, const ProtobufCMessage *request,
                            void *ret_reply);
enum toc_status caller_admin(struct caller *caller, const char *address,
                             const char *method,
                             const ProtobufCMessage *request, void *ret_reply);

/* Submits tasks first..first+n-1 of biz_type by batches; biz_id is the number,
 * due_ms(arg, i) says when; each must be created. */
void caller_submit_many(struct caller *caller, const char *address,
                        const char *biz_type, size_t first, size_t n,
                        int64_t (*due_ms)(void *arg, size_t i), void *arg,
                        const char *target, unsigned batch_max);
/* Fills a request for task number i; everything lives in the arena. */
Toc__V1__SubmitRequest *caller_request(struct toc_arena *arena,
                                       const char *biz_type, size_t i,
                                       int64_t due_ms, const char *target,
                                       unsigned batch_max);
/* The state of task number i, or STATE_UNSPECIFIED when there is none. */
Toc__V1__State caller_state(struct caller *caller, const char *address,
                            const char *biz_type, size_t i);

int64_t wall_ms(void);
/* Waits until fn(arg) holds, looking every 5 ms; false after timeout_ms. */
bool eventually(bool (*fn)(void *arg), void *arg, int64_t timeout_ms);

#endif
