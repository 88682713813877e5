# The consumer of the client matrix that is a database with pgBackRest, which asks STS by itself. Arguments: PREFIX LARGE
# LISTED MANY PAST.
set -uo pipefail

prefix=$1 large=$2
servers=(/usr/lib/postgresql/*/bin)
export PATH=${servers[0]}:/usr/bin PGHOST=/tmp PGUSER=client PGDATABASE=postgres
export PGBACKREST_CONFIG=/tmp/pgbackrest.conf

# All that it needs: it reads none of the variables but the role and the file of the token.
cat >"$PGBACKREST_CONFIG" <<END
[global]
repo1-type=s3
repo1-path=/${prefix%/}
repo1-s3-bucket=$BUCKET_NAME
repo1-s3-region=$AWS_REGION
repo1-s3-endpoint=${AWS_ENDPOINT_URL_S3#https://}
repo1-s3-key-type=web-id
repo1-s3-sts-host=${AWS_ENDPOINT_URL_STS#https://}
repo1-storage-ca-file=$AWS_CA_BUNDLE
repo1-retention-full=2
start-fast=y
compress-level=0
log-path=/tmp
lock-path=/tmp/lock
spool-path=/tmp/spool
[main]
pg1-path=/tmp/main
pg1-socket-path=/tmp
END

# tell FUNCTION OPERATION runs the function to its first failure and writes the line of the matrix.
tell() {
  local started=$SECONDS
  (set -eEx; "$1") >"/tmp/$1.log" 2>&1 # not in a condition: there -e would mean nothing
  # shellcheck disable=SC2181 # see above
  if [ $? -eq 0 ]; then
    printf '%s\tok\t%ds\n' "$2" $((SECONDS - started))
  else
    printf '%s\tfailed\t%s\n' "$2" "$(tail -n 12 "/tmp/$1.log" | tr '\n\t' '  ')"
  fi
}

ask() { psql --port="$1" --tuples-only --no-align --command="$2"; }

first_backup() {
  initdb --pgdata=/tmp/main --auth=trust --no-locale --encoding=UTF8 --no-sync
  printf '%s\n' "unix_socket_directories = '/tmp'" "listen_addresses = ''" "max_wal_size = 64MB" "min_wal_size = 32MB" \
    "archive_mode = on" "archive_command = 'pgbackrest --stanza=main archive-push %p'" >>/tmp/main/postgresql.auto.conf
  pg_ctl --pgdata=/tmp/main --log=/tmp/main.log --timeout=120 --wait start
  pgbackrest --stanza=main stanza-create
  pgbackrest --stanza=main check
  ask 5432 "create table kept (word text)"
  ask 5432 "insert into kept values ('first')"
  pgbackrest --stanza=main --type=full backup
  # What comes after the backup is only in the log; check waits until the log is in the bucket.
  ask 5432 "insert into kept values ('second')"
  pgbackrest --stanza=main check
}

# restored QUERY brings the last backup back, and the log with it, and answers a query.
restored() {
  rm -rf /tmp/restored
  pgbackrest --stanza=main --pg1-path=/tmp/restored --archive-mode=off restore >&2
  printf '%s\n' "port = 5433" >>/tmp/restored/postgresql.auto.conf
  pg_ctl --pgdata=/tmp/restored --log=/tmp/restored.log --timeout=120 --wait start >&2 || { cat /tmp/restored.log >&2; return 1; }
  ask 5433 "$1"
  pg_ctl --pgdata=/tmp/restored --mode=immediate stop >&2
  rm -rf /tmp/restored
}

first_restore() { [ "$(restored "select string_agg(word, ' ' order by word) from kept")" = "first second" ]; }

large_backup() {
  head -c "$large" /dev/urandom >/tmp/random
  local sum
  sum=$(md5sum </tmp/random)
  ask 5432 "create table big (content bytea)"
  ask 5432 "alter table big alter column content set storage external"
  ask 5432 "insert into big values (pg_read_binary_file('/tmp/random'))"
  rm /tmp/random
  pgbackrest --stanza=main --type=full backup
  [ "$(restored "select md5(content) from big")" = "${sum%% *}" ]
}

listed() { [[ $(pgbackrest --stanza=main repo-ls backup/main) == *F*backup.info* ]]; }

# expired makes a third full backup: it and the one before it are kept, and the log that they need.
expired() {
  local before after
  before=$(pgbackrest --stanza=main repo-ls --recurse backup/main | wc -l)
  pgbackrest --stanza=main --type=full --repo1-retention-full=1 backup
  after=$(pgbackrest --stanza=main repo-ls --recurse backup/main | wc -l)
  [ "$after" -lt "$before" ]
}

tell first_backup put
tell first_restore get
tell large_backup multipart
tell listed list
tell expired delete
pg_ctl --pgdata=/tmp/main --mode=immediate stop >/dev/null
