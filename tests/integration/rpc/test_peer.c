/*
 * Goal: clients that share no code with ours get what the gRPC protocols
 * promise: reflection, health, errors with details, and odd requests.
 * Method: the server here, tests/integration/rpc/peer.py (python3-grpcio) as
 * the client, started by posix_spawn: nothing is forked after gRPC has begun.
 */
#include "tests/integration/rpc/rpc_fixture.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

extern char **environ;

static struct desk desk;

struct peer {
    pid_t pid;
    FILE *out; /* what it prints */
};

/* The script lies beside this file. */
static void
script_path(char *path, size_t cap)
{
    const char *slash = strrchr(__FILE__, '/');
    int len = slash != NULL ? (int)(slash - __FILE__) : 1;

    toc_format(path, cap, "%.*s/peer.py", len, slash != NULL ? __FILE__ : ".");
}

static void
peer_start(struct peer *peer, const char *name)
{
    char path[512];
    char *argv[] = {PYTHON, path, desk.address, (char *)name, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];

    script_path(path, sizeof path);
    ck_assert_int_eq(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    ck_assert_int_eq(
        posix_spawn(&peer->pid, PYTHON, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    peer->out = fdopen(ends[0], "r");
    ck_assert_ptr_nonnull(peer->out);
}

/* The next line it prints must be this. */
static void
peer_says(struct peer *peer, const char *text)
{
    char line[64] = "";

    ck_assert_msg(fgets(line, sizeof line, peer->out) != NULL,
                  "the peer ended before it said %s", text);
    line[strcspn(line, "\n")] = '\0';
    ck_assert_str_eq(line, text);
}

static void
peer_end(struct peer *peer)
{
    int status = -1;

    ck_assert_int_eq(waitpid(peer->pid, &status, 0), peer->pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "the peer found something wrong (python3-grpcio is needed); "
                  "see its words above");
    ck_assert_int_eq(fclose(peer->out), 0);
}

static void
run(const char *name)
{
    struct peer peer;

    peer_start(&peer, name);
    peer_end(&peer);
}

START_TEST(reflection_lists_services)
{
    desk_open(&desk);
    run("list");
    desk_close(&desk);
}
END_TEST

START_TEST(reflection_describes)
{
    desk_open(&desk);
    run("describe");
    desk_close(&desk);
}
END_TEST

START_TEST(reflection_is_enough_to_call)
{
    desk_open(&desk);
    run("call");
    desk_close(&desk);
}
END_TEST

START_TEST(odd_clients)
{
    desk_open(&desk);
    run("odd");
    desk_close(&desk);
}
END_TEST

START_TEST(health_is_checked)
{
    desk_open(&desk);
    run("not_serving");
    toc_rpc_server_serving(desk.server, true);
    run("serving");
    toc_rpc_server_serving(desk.server, false);
    run("not_serving");
    desk_close(&desk);
}
END_TEST

/* The watch is open when the server stops, with a grace far longer than the
 * test may take: it must not hold the stop up. */
START_TEST(health_is_watched)
{
    struct peer peer;

    desk_open(&desk);
    peer_start(&peer, "watch");
    peer_says(&peer, "2");
    toc_rpc_server_serving(desk.server, true);
    peer_says(&peer, "1");
    toc_rpc_server_serving(desk.server, true); /* no news */
    toc_rpc_server_serving(desk.server, false);
    peer_says(&peer, "2");
    toc_rpc_server_serving(desk.server, true);
    peer_says(&peer, "1");
    toc_rpc_server_stop(desk.server, INT64_C(3600000));
    peer_says(&peer, "2");
    peer_says(&peer, "end");
    peer_end(&peer);
    desk_close(&desk);
}
END_TEST

START_TEST(open_reflection_ends_with_the_server)
{
    struct peer peer;

    desk_open(&desk);
    peer_start(&peer, "reflect_open");
    peer_says(&peer, "open");
    toc_rpc_server_stop(desk.server, INT64_C(3600000));
    peer_says(&peer, "end");
    peer_end(&peer);
    desk_close(&desk);
}
END_TEST

TOC_CHECK_MAIN("rpc_peer", reflection_lists_services, reflection_describes,
               reflection_is_enough_to_call, odd_clients, health_is_checked,
               health_is_watched, open_reflection_ends_with_the_server)
