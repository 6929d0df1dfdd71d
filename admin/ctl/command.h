/*
 * The table of commands and flags, and the parsing of a command line by it.
 *
 * Threads: any; constant data.
 */
#ifndef TOC_ADMIN_CTL_COMMAND_H
#define TOC_ADMIN_CTL_COMMAND_H

#include "admin/ctl/ctl.h"

struct ctl_flag {
    const char *name;  /* without dashes */
    char letter;       /* short form, or 0 */
    const char *value; /* what to call its value; NULL: takes none */
    const char *doc;
};

struct ctl_flag_group {
    const char *title;
    const struct ctl_flag *flags;
    size_t n;
};

#define CTL_GROUPS_MAX 3
#define CTL_ARGS_MANY 1000

typedef enum ctl_exit ctl_command_fn(struct ctl *ctl);

struct ctl_command {
    const char *name; /* one or two words */
    const char *args; /* as shown: "REF..." */
    size_t args_min, args_max;
    const char *summary; /* one line */
    const char *detail;  /* paragraphs; may be NULL */
    const char *example; /* lines; may be NULL */
    const struct ctl_flag_group *groups[CTL_GROUPS_MAX + 1]; /* NULL ends */
    ctl_command_fn *run;
};

extern const struct ctl_command ctl_commands[];
extern const size_t ctl_n_commands;
extern const struct ctl_flag_group ctl_global_flags;

/* Another way to say a command: "get nodes" is "nodes". */
struct ctl_alias {
    const char *words, *command;
};
extern const struct ctl_alias ctl_aliases[];
extern const size_t ctl_n_aliases;

/* By its words; *ret_words says how many of them the name took. */
const struct ctl_command *ctl_command_find(const char *const *words, size_t n,
                                           size_t *ret_words);

/*
 * Fills command, args, values, output and timeout of *ctl. Errors are reported.
 * command stays NULL when no command was named.
 */
TOC_MUST_CHECK enum ctl_exit ctl_parse(struct ctl *ctl, int argc, char **argv);

#endif
