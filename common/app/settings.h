/*
 * The settings that every role has. A role's settings struct holds them in a
 * member `common` and puts the rows first in its table:
 *
 *     struct sched_settings {
 *         struct toc_common_settings common;
 *         int64_t lead_ms;
 *     };
 *     static const struct toc_setting table[] = {
 *         TOC_COMMON_SETTINGS(struct sched_settings)
 *         {"lead_ms", TOC_SETTING_INT, offsetof(...), ...},
 *     };
 *
 * Threads: at start only. The struct must not move after
 * toc_common_settings_finish (node may point into it).
 */
#ifndef TOC_APP_SETTINGS_H
#define TOC_APP_SETTINGS_H

#include "common/base/config.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOC_NODE_MAX 63
#define TOC_CLUSTER_MAX 32
#define TOC_PASSWORD_MAX 256

struct toc_common_settings {
    const char *cluster;
    const char *node;
    const char *listen;
    const char *advertise;
    const char *mysql;
    const char *mysql_password_file;
    const char *etcd;
    const char *kafka;
    const char *log_level;
    int64_t partitions;
    /* Filled by toc_common_settings_finish. */
    enum toc_log_level level;
    char mysql_password[TOC_PASSWORD_MAX + 1]; /* "" without a file */
    char node_text[TOC_NODE_MAX + 1];
};

#define TOC_COMMON_ROW_(type, name_, fallback_, doc_) \
    {.name = #name_,                                  \
     .kind = TOC_SETTING_TEXT,                        \
     .offset = offsetof(type, common.name_),          \
     .fallback = (fallback_),                         \
     .unit = "",                                      \
     .doc = (doc_)},

#define TOC_COMMON_SETTINGS(type)                                           \
    TOC_COMMON_ROW_(type, cluster, "toc",                                   \
                    "Name of the cluster: a prefix of topics and keys")     \
    TOC_COMMON_ROW_(type, node, "",                                         \
                    "Name of this process, unique in its role; none: host " \
                    "name and process id")                                  \
    TOC_COMMON_ROW_(type, listen, "127.0.0.1:0",                            \
                    "host:port of the gRPC server; port 0: any free one")   \
    TOC_COMMON_ROW_(type, advertise, "",                                    \
                    "host:port told to others; none: what listen became")   \
    TOC_COMMON_ROW_(type, mysql, NULL,                                      \
                    "mysql://user@host:port/db, or "                        \
                    "mysql://user@/db?socket=/path")                        \
    TOC_COMMON_ROW_(type, mysql_password_file, "",                          \
                    "File whose first line is the password; none: no "      \
                    "password")                                             \
    TOC_COMMON_ROW_(type, etcd, "http://127.0.0.1:2379",                    \
                    "http://host:port of etcd, several with commas")        \
    TOC_COMMON_ROW_(type, kafka, "127.0.0.1:9092",                          \
                    "host:port of Kafka brokers, several with commas")      \
    TOC_COMMON_ROW_(type, log_level, "info", "debug, info, warn or error"){ \
        .name = "partitions",                                               \
        .kind = TOC_SETTING_INT,                                            \
        .offset = offsetof(type, common.partitions),                        \
        .fallback = "8",                                                    \
        .min = 1,                                                           \
        .max = 1024,                                                        \
        .unit = "partitions",                                               \
        .doc = "Kafka partitions per due topic, when they are made"},

/*
 * Checks cluster, node and log_level, gives the node its name, reads the
 * password and turns the log on as `role`.
 */
TOC_MUST_CHECK enum toc_status toc_common_settings_finish(
    struct toc_common_settings *settings, const char *role,
    struct toc_error *reterr);

/* The first line of the file, without its end. An empty path is no password.
 * TOC_INVALID: not readable, or longer than cap - 1. */
TOC_MUST_CHECK enum toc_status toc_password_read(const char *path, char *ret,
                                                 size_t cap,
                                                 struct toc_error *reterr);

/* Splits at commas, trims spaces, leaves out what is empty; false when there
 * are more than max. The items borrow from text. */
bool toc_list_split(struct toc_str text, struct toc_str *items, size_t max,
                    size_t *ret_n);

#endif
