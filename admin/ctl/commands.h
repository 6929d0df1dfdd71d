/*
 * The commands, one function each. Threads: one. They report what fails and
 * return how the process ends.
 */
#ifndef TOC_ADMIN_CTL_COMMANDS_H
#define TOC_ADMIN_CTL_COMMANDS_H

#include "admin/ctl/command.h"

enum ctl_exit ctl_cmd_submit(struct ctl *ctl);
enum ctl_exit ctl_cmd_get(struct ctl *ctl);
enum ctl_exit ctl_cmd_list(struct ctl *ctl);
enum ctl_exit ctl_cmd_describe(struct ctl *ctl);
enum ctl_exit ctl_cmd_cancel(struct ctl *ctl);
enum ctl_exit ctl_cmd_reschedule(struct ctl *ctl);
enum ctl_exit ctl_cmd_pause(struct ctl *ctl);
enum ctl_exit ctl_cmd_resume(struct ctl *ctl);
enum ctl_exit ctl_cmd_run_now(struct ctl *ctl);
enum ctl_exit ctl_cmd_dead_list(struct ctl *ctl);
enum ctl_exit ctl_cmd_dead_redrive(struct ctl *ctl);
enum ctl_exit ctl_cmd_buckets(struct ctl *ctl);
enum ctl_exit ctl_cmd_shards(struct ctl *ctl);
enum ctl_exit ctl_cmd_nodes(struct ctl *ctl);
enum ctl_exit ctl_cmd_health(struct ctl *ctl);
enum ctl_exit ctl_cmd_version(struct ctl *ctl);
enum ctl_exit ctl_cmd_help(struct ctl *ctl);
enum ctl_exit ctl_cmd_completion(struct ctl *ctl);

enum ctl_exit ctl_help_overview(struct ctl *ctl);
enum ctl_exit ctl_help_command(struct ctl *ctl,
                               const struct ctl_command *command);

#endif
