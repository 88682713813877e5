package access

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the page of operations anew")

// language is what the page says in one language around the names of S3.
type language struct {
	file, front, end string
	header           string
	kinds            map[string]string
}

func languages() []language {
	return []language{
		{
			file: "../../docs/OPERATIONS.md", front: operationsFront, end: operationsEnd,
			header: "| operation | what becomes of it | what the key needs |",
			kinds: map[string]string{
				"pass": "done", "answer": "answered, nothing is changed", "refuse": "refused", "none": "any key of the bucket",
				"read": "read", "write": "write", "read,write": "read, write",
			},
		},
		{
			file: "../../docs/OPERATIONS.ru.md", front: operationsFrontRussian, end: operationsEndRussian,
			header: "| операция | что с ней происходит | что нужно ключу |",
			kinds: map[string]string{
				"pass": "выполняется", "answer": "даётся ответ, ничего не меняется", "refuse": "отказ", "none": "любой ключ бакета",
				"read": "чтение", "write": "запись", "read,write": "чтение, запись",
			},
		},
	}
}

// copiesOf are the operations that a header makes of two others.
func copiesOf() []route {
	return []route{pass("CopyObject", ReadWrite), pass("UploadPartCopy", ReadWrite)}
}

// table is a line for each operation, by name.
func (l language) table() string {
	all := copiesOf()
	for _, known := range []map[target]route{routes, forbidden} {
		for _, r := range known {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b route) int { return cmp.Compare(a.name, b.name) })
	var out strings.Builder
	out.WriteString(l.header + "\n|---|---|---|\n")
	for _, r := range all {
		fate, need := "", l.kinds[r.need.String()]
		switch r.kind {
		case Pass:
			fate = l.kinds["pass"]
		case Answer:
			fate = l.kinds["answer"]
		case Refuse:
			fate, need = fmt.Sprintf("%s: %d `%s`", l.kinds["refuse"], r.err.Status, r.err.Code), "-"
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", r.name, fate, need)
	}
	return out.String()
}

func TestThePageOfOperationsIsTrue(t *testing.T) {
	for _, l := range languages() {
		page := l.front + l.table() + l.end
		if *update {
			require.NoError(t, os.WriteFile(l.file, []byte(page), 0o644))
		}
		written, err := os.ReadFile(l.file)
		require.NoError(t, err)
		require.Equal(t, page, string(written), "%s is stale: go test ./lib/access -run TestThePageOfOperationsIsTrue -update", l.file)
	}
}

func TestEachOperationHasOneFate(t *testing.T) {
	for where := range forbidden {
		require.NotContains(t, routes, where)
	}
	fates := map[string]Kind{}
	for _, known := range []map[target]route{routes, forbidden} {
		for where, r := range known {
			before, twice := fates[r.name]
			require.False(t, twice && before != r.kind, "%s of %v", r.name, where)
			fates[r.name] = r.kind
			require.Equal(t, r.kind == Refuse, r.err.Code != "", r.name)
			require.True(t, where.keyword == "" || isKeyword(where.keyword), "%s: nothing chooses by %q", r.name, where.keyword)
		}
	}
}

const operationsFront = `---
title: "S3 operations"
description: "What the store does, what it answers for compatibility, and what it refuses with which error."
---

The gateway knows every request it lets through; what it does not know it refuses, so that nothing is ignored silently.
The table is made from the code.

`

const operationsEnd = `
Whatever is not in the table is refused with 501 ` + "`NotImplemented`" + `: versions, Object Lock, tags, policies, notifications and
the like. So is an unknown query parameter, an unknown ` + "`x-amz-*`" + ` header and a known one with a value that Garage would not
obey. In particular:

| what | answer |
|---|---|
| conditional writes (` + "`If-Match`, `If-None-Match`" + ` with a write), conditional deletes | 501 ` + "`NotImplemented`" + `: Garage would write all the same, so build no locks on it |
| encryption with keys of the client or of a KMS | 501 ` + "`NotImplemented`" + ` |
| any ACL but ` + "`private` and `bucket-owner-full-control`" + ` | 400 ` + "`AccessControlListNotSupported`" + ` |
| a storage class other than ` + "`STANDARD`" + ` | 400 ` + "`InvalidStorageClass`" + ` |
| a version other than ` + "`null`" + `, in DeleteObjects too | 404 ` + "`NoSuchVersion`" + ` |
| a bucket that is not the key's, there or not | 403 ` + "`AccessDenied`" + ` |
| a key that has ended | 400 ` + "`ExpiredToken`" + `, upon which SDKs get another |
| a quota that is reached | 403 ` + "`QuotaExceeded`" + `, with the limit, the use and the way out |
| keys of objects longer than 471 bytes | 400 ` + "`KeyTooLongError`" + ` |
| no room left on the volumes | 507 ` + "`InsufficientStorage`" + ` |
| the store is not ready for the moment | 503 ` + "`SlowDown` or `ServiceUnavailable`" + `, upon which SDKs try again |

Every error carries ` + "`x-amz-request-id`" + `; the line about it in the log of container ` + "`gateway`" + ` carries the same as ` + "`requestID`" + `
(404, 412 and 416, which clients ask for all day, have their line at level ` + "`debug`" + ` only).

With three replicas a listing may for a moment still show what was deleted right before: a deletion is answered when two of
them have it. GET and HEAD do not find it any more.
`

const operationsFrontRussian = `---
title: "Операции S3"
description: "Что хранилище выполняет, на что отвечает ради совместимости и в чём отказывает с какой ошибкой."
---

Шлюз знает каждый запрос, который пропускает; чего не знает, в том отказывает, поэтому ничто не пропускается молча.
Таблица составлена по коду.

`

const operationsEndRussian = `
Во всём, чего нет в таблице, отказывается с ошибкой 501 ` + "`NotImplemented`" + `: версии, Object Lock, теги, политики, уведомления и
тому подобное. Так же и с неизвестным параметром запроса, с неизвестным заголовком ` + "`x-amz-*`" + ` и с известным, если его значению
Garage не последует. В частности:

| что | ответ |
|---|---|
| условная запись (` + "`If-Match`, `If-None-Match`" + ` при записи), условное удаление | 501 ` + "`NotImplemented`" + `: Garage записал бы всё равно, поэтому не стройте на этом блокировок |
| шифрование ключами клиента или KMS | 501 ` + "`NotImplemented`" + ` |
| любой ACL, кроме ` + "`private` и `bucket-owner-full-control`" + ` | 400 ` + "`AccessControlListNotSupported`" + ` |
| класс хранения, отличный от ` + "`STANDARD`" + ` | 400 ` + "`InvalidStorageClass`" + ` |
| версия, отличная от ` + "`null`" + `, в том числе в DeleteObjects | 404 ` + "`NoSuchVersion`" + ` |
| бакет, к которому ключ не относится, существует он или нет | 403 ` + "`AccessDenied`" + ` |
| ключ, срок которого истёк | 400 ` + "`ExpiredToken`" + `, после чего SDK получает другой |
| достигнутая квота | 403 ` + "`QuotaExceeded`" + ` с пределом, занятым объёмом и выходом из положения |
| ключи объектов длиннее 471 байта | 400 ` + "`KeyTooLongError`" + ` |
| на томах не осталось места | 507 ` + "`InsufficientStorage`" + ` |
| хранилище пока не готово | 503 ` + "`SlowDown` или `ServiceUnavailable`" + `, после чего SDK повторяет запрос |

В каждой ошибке есть ` + "`x-amz-request-id`" + `; строка о ней в журнале контейнера ` + "`gateway`" + ` несёт то же значение в поле ` + "`requestID`" + `
(404, 412 и 416, обычные ответы при работе клиентов, попадают в журнал только на уровне ` + "`debug`" + `).

При трёх репликах список может ещё мгновение показывать то, что удалено прямо перед ним: на удаление отвечают, когда оно есть
на двух из них. GET и HEAD объект уже не находят.
`
