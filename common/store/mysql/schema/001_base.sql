-- Tasks, keys, history, marks. Day partitions are made by the program; here is
-- only the one for parked rows (negative slots). No MAXVALUE partition: adding
-- a day would then mean moving rows.

CREATE TABLE IF NOT EXISTS task_info (
    slice SMALLINT UNSIGNED NOT NULL,
    slot_ms BIGINT NOT NULL,
    task_id BINARY(16) NOT NULL,
    status TINYINT UNSIGNED NOT NULL,
    flags TINYINT UNSIGNED NOT NULL,
    attempt SMALLINT UNSIGNED NOT NULL,
    claims SMALLINT UNSIGNED NOT NULL,
    fire INT UNSIGNED NOT NULL,
    version INT UNSIGNED NOT NULL,
    lock_token BIGINT UNSIGNED NOT NULL,
    lock_until_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    claimed_ms BIGINT NOT NULL,
    called_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL,
    sched_node INT UNSIGNED NOT NULL,
    exec_node INT UNSIGNED NOT NULL,
    result TINYINT UNSIGNED NOT NULL,
    error VARBINARY(512) NOT NULL,
    line_id INT UNSIGNED NOT NULL,
    target_id INT UNSIGNED NOT NULL,
    key_hash BINARY(16) NOT NULL,
    biz_type VARBINARY(64) NOT NULL,
    biz_id VARBINARY(128) NOT NULL,
    name VARBINARY(64) NOT NULL,
    spec VARBINARY(2048) NOT NULL,
    payload_len INT UNSIGNED NOT NULL,
    payload_short VARBINARY(1024) NOT NULL,
    payload_long MEDIUMBLOB NULL,
    PRIMARY KEY (slice, slot_ms, task_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC
PARTITION BY RANGE (slot_ms) (PARTITION p_parked VALUES LESS THAN (0));

CREATE TABLE IF NOT EXISTS task_key (
    key_hash BINARY(16) NOT NULL,
    task_id BINARY(16) NOT NULL,
    slice SMALLINT UNSIGNED NOT NULL,
    slot_ms BIGINT NOT NULL,
    content BINARY(8) NOT NULL,
    PRIMARY KEY (key_hash)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS key_history (
    key_hash BINARY(16) NOT NULL,
    slot_ms BIGINT NOT NULL,
    task_id BINARY(16) NOT NULL,
    slice SMALLINT UNSIGNED NOT NULL,
    PRIMARY KEY (key_hash, slot_ms, task_id)
) ENGINE=InnoDB
PARTITION BY RANGE (slot_ms) (PARTITION p_parked VALUES LESS THAN (0));

CREATE TABLE IF NOT EXISTS task_log (
    slice SMALLINT UNSIGNED NOT NULL,
    slot_ms BIGINT NOT NULL,
    task_id BINARY(16) NOT NULL,
    log_id BIGINT UNSIGNED NOT NULL,
    kind TINYINT UNSIGNED NOT NULL,
    result TINYINT UNSIGNED NOT NULL,
    fire INT UNSIGNED NOT NULL,
    attempt SMALLINT UNSIGNED NOT NULL,
    version INT UNSIGNED NOT NULL,
    next_slot_ms BIGINT NOT NULL,
    sched_node INT UNSIGNED NOT NULL,
    exec_node INT UNSIGNED NOT NULL,
    claimed_ms BIGINT NOT NULL,
    called_ms BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    who VARBINARY(128) NOT NULL,
    trace BINARY(16) NOT NULL,
    detail VARBINARY(1024) NOT NULL,
    PRIMARY KEY (slice, slot_ms, task_id, log_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC
PARTITION BY RANGE (slot_ms) (PARTITION p_parked VALUES LESS THAN (0));

CREATE TABLE IF NOT EXISTS dead_task (
    slice SMALLINT UNSIGNED NOT NULL,
    slot_ms BIGINT NOT NULL,
    task_id BINARY(16) NOT NULL,
    status TINYINT UNSIGNED NOT NULL,
    flags TINYINT UNSIGNED NOT NULL,
    attempt SMALLINT UNSIGNED NOT NULL,
    claims SMALLINT UNSIGNED NOT NULL,
    fire INT UNSIGNED NOT NULL,
    version INT UNSIGNED NOT NULL,
    lock_token BIGINT UNSIGNED NOT NULL,
    lock_until_ms BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    claimed_ms BIGINT NOT NULL,
    called_ms BIGINT NOT NULL,
    ended_ms BIGINT NOT NULL,
    sched_node INT UNSIGNED NOT NULL,
    exec_node INT UNSIGNED NOT NULL,
    result TINYINT UNSIGNED NOT NULL,
    error VARBINARY(512) NOT NULL,
    line_id INT UNSIGNED NOT NULL,
    target_id INT UNSIGNED NOT NULL,
    key_hash BINARY(16) NOT NULL,
    biz_type VARBINARY(64) NOT NULL,
    biz_id VARBINARY(128) NOT NULL,
    name VARBINARY(64) NOT NULL,
    spec VARBINARY(2048) NOT NULL,
    payload_len INT UNSIGNED NOT NULL,
    payload_short VARBINARY(1024) NOT NULL,
    payload_long MEDIUMBLOB NULL,
    dead_ms BIGINT NOT NULL,
    reason VARBINARY(256) NOT NULL,
    PRIMARY KEY (task_id),
    KEY by_time (dead_ms, task_id),
    KEY by_line (line_id, dead_ms, task_id),
    KEY by_biz (biz_id, dead_ms, task_id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS shard_owner (
    shard_id SMALLINT UNSIGNED NOT NULL,
    state TINYINT UNSIGNED NOT NULL,
    low_ms BIGINT NOT NULL,
    keygc_ms BIGINT NOT NULL,
    PRIMARY KEY (shard_id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS straggler (
    slice SMALLINT UNSIGNED NOT NULL,
    slot_ms BIGINT NOT NULL,
    task_id BINARY(16) NOT NULL,
    PRIMARY KEY (slice, slot_ms, task_id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS node (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    role VARBINARY(32) NOT NULL,
    name VARBINARY(128) NOT NULL,
    address VARBINARY(128) NOT NULL,
    started_ms BIGINT NOT NULL,
    PRIMARY KEY (id)
) ENGINE=InnoDB;
