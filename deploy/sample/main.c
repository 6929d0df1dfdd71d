/*
 * toc-shop: a small business whose unpaid orders are closed by TOC, and its
 * command line. Without arguments (or with flags only) it serves.
 */
#include "common/app/app.h"
#include "common/base/config.h"
#include "common/base/log.h"
#include "common/clock/os/clock_os.h"
#include "deploy/sample/client.h"
#include "deploy/sample/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct settings {
    const char *listen, *advertise, *schedulers, *log_level;
};

#define TEXT_ROW(name_, member, fallback_, doc_)                              \
    {                                                                         \
        .name = (name_), .kind = TOC_SETTING_TEXT,                            \
        .offset = offsetof(struct settings, member), .fallback = (fallback_), \
        .unit = "", .doc = (doc_)                                             \
    }

static const struct toc_setting table[] = {
    TEXT_ROW("shop_listen", listen, "127.0.0.1:0",
             "host:port to serve at; port 0: any free one"),
    TEXT_ROW("shop_advertise", advertise, "",
             "host:port at which TOC calls; none: where it listens"),
    TEXT_ROW("scheduler", schedulers, NULL,
             "host:port of TOC's schedulers, several with commas"),
    TEXT_ROW("log_level", log_level, "info", "debug, info, warn or error"),
};

static int
serve(const struct settings *settings)
{
    struct toc_app *app = toc_app_new(toc_clock_os());
    struct service *service = NULL;
    struct toc_error err;
    enum toc_status st;

    st = service_start(
        &(struct service_options){.listen = settings->listen,
                                  .advertise = settings->advertise,
                                  .schedulers = settings->schedulers},
        &service, &err);
    if (st == TOC_OK) {
        TOC_LOG(INFO, "rpc.listening", F_MSG("the shop is open"),
                F_STR("addr", service_address(service)));
        toc_app_wait_stop(app);
        service_stop(service);
    } else {
        TOC_LOG(ERROR, "shop.failed", F_MSG("cannot serve"), F_ERR(&err));
    }
    toc_app_free(app);
    return st == TOC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
    struct settings settings = {0};
    enum toc_log_level level = TOC_LOG_INFO;
    struct toc_error err;
    char node[32];
    bool done;

    if (argc > 1 && argv[1][0] != '-')
        return client_main(argc - 1, argv + 1);
    if (toc_config_parse(table, sizeof table / sizeof table[0], &settings, argc,
                         argv, client_help, &done, &err) != TOC_OK) {
        fprintf(stderr, "toc-shop: %s\n", err.msg);
        return 2;
    }
    if (done)
        return EXIT_SUCCESS;
    if (!toc_log_level_parse(toc_str_of(settings.log_level), &level)) {
        fprintf(stderr, "toc-shop: log_level: no such level\n");
        return 2;
    }
    toc_format(node, sizeof node, "shop-%ld", (long)getpid());
    toc_log_init("shop", node, level);
    return serve(&settings);
}
