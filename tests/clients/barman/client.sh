# The consumer of the client matrix that is a database: PostgreSQL sends its log and its backups into the bucket by
# barman-cloud, and comes back from there. Arguments: PREFIX LARGE LISTED MANY PAST.
set -uo pipefail

prefix=$1 large=$2 past=$5
export PATH=/usr/lib/postgresql/17/bin:/usr/bin PGHOST=/tmp PGUSER=client PGDATABASE=postgres
store=("s3://$BUCKET_NAME/${prefix%/}" main)

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

# cluster FOLDER PORT SETTING... starts a server on the folder.
cluster() {
  local folder=$1 port=$2
  shift 2
  printf '%s\n' "port = $port" "unix_socket_directories = '/tmp'" "listen_addresses = ''" "max_wal_size = 64MB" \
    "min_wal_size = 32MB" "archive_timeout = 0" "$@" >>"$folder/postgresql.auto.conf"
  pg_ctl --pgdata="$folder" --log="$folder.log" --timeout=120 --wait start || { cat "$folder.log"; return 1; }
}

first_backup() {
  initdb --pgdata=/tmp/main --auth=trust --no-locale --encoding=UTF8 --no-sync
  cluster /tmp/main 5432 "archive_mode = on" "archive_command = 'barman-cloud-wal-archive ${store[*]} %p'"
  psql --command="create table kept (word text)" --command="insert into kept values ('first')"
  barman-cloud-backup --immediate-checkpoint --name=small "${store[@]}"
  # What comes after the backup is only in the log: it is waited for until it is in the bucket.
  psql --command="insert into kept values ('second')"
  local segment
  segment=$(psql --tuples-only --no-align --command="select pg_walfile_name(pg_switch_wal())")
  for _ in $(seq 300); do
    if [ "$(psql --tuples-only --no-align --command="select last_archived_wal >= '$segment' from pg_stat_archiver")" = t ]; then
      return 0
    fi
    sleep 1
  done
  return 1
}

# restored BACKUP PORT QUERY brings the backup back, and the log with it, and answers a query.
restored() {
  local folder=/tmp/restored-$1
  rm -rf "$folder"
  barman-cloud-restore "${store[@]}" "$1" "$folder" >&2
  : >"$folder/postgresql.auto.conf"
  touch "$folder/recovery.signal"
  cluster "$folder" "$2" "archive_mode = off" "restore_command = 'barman-cloud-wal-restore ${store[*]} %f %p'" >&2
  psql --port="$2" --tuples-only --no-align --command="$3"
  pg_ctl --pgdata="$folder" --mode=immediate stop >&2
  rm -rf "$folder"
}

first_restore() {
  [ "$(restored small 5433 "select string_agg(word, ' ' order by word) from kept")" = "first second" ]
}

large_backup() {
  head -c "$large" /dev/urandom >/tmp/random
  psql --command="create table big (content bytea)" --command="alter table big alter column content set storage external" \
    --command="insert into big values (pg_read_binary_file('/tmp/random'))"
  local sum
  sum=$(md5sum </tmp/random)
  rm /tmp/random
  barman-cloud-backup --immediate-checkpoint --name=large "${store[@]}"
  [ "$(restored large 5434 "select md5(content) from big")" = "${sum%% *}" ]
}

# A backup that takes longer than a key lives is one process from the beginning to the end.
slow_backup() {
  barman-cloud-backup --immediate-checkpoint --name=slow --max-bandwidth=$(((large + 30000000) / past / 1000))kB "${store[@]}"
}

backups() { barman-cloud-backup-list "${store[@]}"; }

listed() { [[ $(backups) == *small*large*slow* || $(backups) == *slow*large*small* ]]; }

deleted() {
  barman-cloud-backup-delete --backup-id=small "${store[@]}"
  [[ $(backups) != *small* ]]
}

tell first_backup put
tell first_restore get
tell large_backup multipart
tell slow_backup past-expiry
tell listed list
tell deleted delete
pg_ctl --pgdata=/tmp/main --mode=immediate stop >/dev/null
