/*
 * The interrupt: shuts down the sockets of all connections, so that whoever
 * waits for the server's answer has an error instead.
 *
 * The client library closes a socket by itself when it finds it broken, and the
 * number may then be another file's. So a watched connection has a descriptor
 * of its own for the same socket; it is closed under the lock, when nothing is
 * to be interrupted any more. A connection that is just being opened is not
 * watched: it ends by its timeout, a second once hastened.
 *
 * Threads: watch and unwatch: who has the connection; the rest: any.
 * Locks: store->lock.
 */
#include "common/store/mysql/store_mysql_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum toc_status
toc_my_say_interrupted(struct toc_error *reterr)
{
    return toc_error_set(reterr, TOC_UNAVAILABLE, "mysql", 0,
                         "interrupted: the process is stopping");
}

static int
socket_of(const struct toc_my_conn *conn)
{
#ifdef MARIADB_PACKAGE_VERSION
    return fcntl((int)mysql_get_socket(conn->mysql), F_DUPFD_CLOEXEC, 3);
#else /* MySQL's own library */
    return fcntl(conn->mysql->net.fd, F_DUPFD_CLOEXEC, 3);
#endif
}

enum toc_status
toc_my_watch(struct toc_my_conn *conn, struct toc_error *reterr)
{
    struct toc_store_mysql *store = conn->store;
    bool late;

    conn->socket = socket_of(conn);
    if (conn->socket < 0)
        return toc_error_set(reterr, TOC_UNAVAILABLE, "mysql", errno,
                             "no descriptor for a connection: %s",
                             toc_errno_text(errno));
    pthread_mutex_lock(&store->lock);
    late = atomic_load(&store->interrupted);
    toc_list_push(&store->watched, &conn->watched);
    pthread_mutex_unlock(&store->lock);
    return late ? toc_my_say_interrupted(reterr) : TOC_OK;
}

void
toc_my_unwatch(struct toc_my_conn *conn)
{
    if (conn->socket < 0)
        return;
    pthread_mutex_lock(&conn->store->lock);
    toc_list_remove(&conn->watched);
    (void)close(conn->socket);
    pthread_mutex_unlock(&conn->store->lock);
    conn->socket = -1;
}

void
toc_my_hasten(void *self)
{
    struct toc_store_mysql *store = self;

    atomic_store(&store->hasty, true);
}

void
toc_my_interrupt(void *self)
{
    struct toc_store_mysql *store = self;
    struct toc_link *link;

    pthread_mutex_lock(&store->lock);
    atomic_store(&store->interrupted, true);
    for (link = store->watched.next; link != &store->watched; link = link->next)
        (void)shutdown(
            toc_container_of(link, struct toc_my_conn, watched)->socket,
            SHUT_RDWR);
    pthread_cond_broadcast(&store->freed);
    pthread_mutex_unlock(&store->lock);
}
