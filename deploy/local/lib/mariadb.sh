# shellcheck shell=bash
# A private MariaDB: no system service, no system configuration.
#
# Accounts and the database are made by an init file, which the server runs
# before it takes connections: at no moment is there a root without password.

mariadb_socket()
{
    local path=$TOC_HOME/run/mariadb.sock
    # a socket's path holds 107 bytes at most
    if ((${#path} > 90)); then
        path=/tmp/toc-$EUID-$(printf '%s' "$TOC_HOME" | sha256sum |
            cut -c1-16).sock
    fi
    printf '%s' "$path"
}

mariadb_password_file()
{
    printf '%s/mariadb/toc.password' "$TOC_HOME"
}

mariadb_secret()
{
    local file=$1
    [[ -s $file ]] || (umask 077 && random_token 32 >"$file")
    cat -- "$file"
}

# One statement a line: the server reads the file so. Repeating it is harmless.
mariadb_write_init()
{
    local pw root_pw
    pw=$(mariadb_secret "$(mariadb_password_file)")
    root_pw=$(mariadb_secret "$TOC_HOME/mariadb/root.password")
    (
        umask 077
        cat >"$TOC_HOME/mariadb/init.sql" <<SQL
ALTER USER root@localhost IDENTIFIED BY '$root_pw';
DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost');
FLUSH PRIVILEGES;
CREATE DATABASE IF NOT EXISTS toc CHARACTER SET binary;
CREATE USER IF NOT EXISTS toc@localhost, toc@127.0.0.1;
ALTER USER toc@localhost IDENTIFIED BY '$pw', toc@127.0.0.1 IDENTIFIED BY '$pw';
GRANT ALL PRIVILEGES ON \`toc%\`.* TO toc@localhost, toc@127.0.0.1;
SQL
    )
}

mariadb_as_user()
{
    # mariadbd refuses to run as root unless told so
    if ((EUID == 0)); then
        printf -- '--user=root'
    else
        printf -- '--skip-symbolic-links'
    fi
}

mariadb_redo_size()
{
    printf '%s' "${TOC_LOCAL_LOG_FILE_SIZE:-512M}"
}

mariadb_prepare()
{
    local dir=$TOC_HOME/mariadb log start
    log=$(log_of mariadb)
    mkdir -p -- "$dir"
    mariadb_write_init
    [[ ! -d $dir/data ]] || return 0
    start=$(now_ms)
    # made aside and renamed: an interrupted first start leaves nothing half
    rm -rf -- "$dir/data.new"
    run_shown "the database's tables" "$log" mariadb_make_tables || {
        show_log_end "$log"
        die "could not create the database's tables in $dir"
    }
    mv -- "$dir/data.new" "$dir/data"
    say "created   the database's tables ($(seconds_since "$start") s)"
}

# The script does not quote its paths everywhere: relative ones have no space.
mariadb_make_tables()
{
    cd -- "$TOC_HOME/mariadb" || return 1
    mariadb-install-db --no-defaults --datadir=./data.new --skip-test-db \
        --auth-root-authentication-method=normal --skip-name-resolve \
        --innodb-log-file-size="$(mariadb_redo_size)" "$(mariadb_as_user)"
}

mariadb_start()
{
    port_ensure MARIADB mariadb
    mariadb_prepare
    proc_start mariadb "$TOC_HOME/mariadb" \
        "$(command -v mariadbd || printf /usr/sbin/mariadbd)" --no-defaults \
        "$(mariadb_as_user)" \
        --datadir="$TOC_HOME/mariadb/data" \
        --socket="$(mariadb_socket)" \
        --pid-file="$TOC_HOME/mariadb/mariadbd.pid" \
        --init-file="$TOC_HOME/mariadb/init.sql" \
        --port="${PORTS[MARIADB]}" --bind-address=127.0.0.1 \
        --skip-networking=0 --skip-name-resolve \
        --max-connections=500 --performance-schema=OFF \
        --character-set-server=binary --collation-server=binary \
        --innodb-buffer-pool-size="${TOC_LOCAL_BUFFER_POOL:-1G}" \
        --innodb-log-file-size="$(mariadb_redo_size)" \
        --innodb-flush-log-at-trx-commit=1
}

mariadb_ready()
{
    MYSQL_PWD=$(cat -- "$(mariadb_password_file)") timeout 5 \
        mariadb --no-defaults --user=toc --host=127.0.0.1 --protocol=tcp \
        --port="${PORTS[MARIADB]}" --connect-timeout=2 \
        --batch --skip-column-names --execute='SELECT 1' toc
}

mariadb_wait()
{
    proc_wait_ready mariadb 60 "see the log above; a full disk, or a data \
folder of another MariaDB version, are usual reasons (toc destroy starts afresh)" \
        mariadb_ready
}

mariadb_address()
{
    printf '127.0.0.1:%s' "${PORTS[MARIADB]:-?}"
}
