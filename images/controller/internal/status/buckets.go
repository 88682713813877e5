package status

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// PageSize is how many buckets are shown at once.
const PageSize = 50

// Buckets are the buckets that were asked for, and where they stand among all.
type Buckets struct {
	Query      Query
	Unread     bool
	Total      int // of all
	Troubled   int // of all, those to look at
	Waiting    int // of all, those that are not ready and need nobody
	Matching   int
	Page       int
	Pages      int
	First      int // number of the first row among the matching, from 1; 0 without rows
	Last       int
	Rows       []BucketView
	Namespaces []string // of all buckets
	// Previous and Next are query strings, empty at the ends.
	Previous, Next string
}

// BucketView is a row.
type BucketView struct {
	Level           Level
	Namespace, Name string
	S3Name          string
	State, Message  string
	Used, Size      string
	Counted         bool
	Share           int64 // of the quota by space, in percent, at most 100
	ShareText       string
	ShareLevel      Level
	Objects         string
}

func buckets(w World, q Query) Buckets {
	b := Buckets{Query: q, Unread: w.unread(SourceBuckets), Total: len(w.Buckets)}
	seen := map[string]bool{}
	matching := make([]*Bucket, 0, len(w.Buckets))
	for i := range w.Buckets {
		bucket := &w.Buckets[i]
		seen[bucket.Namespace] = true
		troubled := b.count(*bucket)
		if matches(*bucket, q) && (troubled || !q.Trouble) {
			matching = append(matching, bucket)
		}
	}
	for namespace := range seen {
		b.Namespaces = append(b.Namespaces, namespace)
	}
	slices.Sort(b.Namespaces)
	slices.SortFunc(matching, order(q.Sort))
	b.turn(matching)
	return b
}

// turn shows the page that was asked for, or the nearest that exists.
func (b *Buckets) turn(matching []*Bucket) {
	b.Matching = len(matching)
	b.Pages = max(1, (b.Matching+PageSize-1)/PageSize)
	b.Page = min(max(1, b.Query.Page), b.Pages)
	first := (b.Page - 1) * PageSize
	last := min(first+PageSize, b.Matching)
	for _, bucket := range matching[first:last] {
		b.Rows = append(b.Rows, row(*bucket))
	}
	if b.Matching > 0 {
		b.First, b.Last = first+1, last
	}
	if b.Page > 1 {
		b.Previous = b.Query.at(b.Page - 1)
	}
	if b.Page < b.Pages {
		b.Next = b.Query.at(b.Page + 1)
	}
}

// at is the query string of another page of the same buckets.
func (q Query) at(page int) string {
	values := url.Values{}
	for name, value := range map[string]string{"q": q.Text, "namespace": q.Namespace, "sort": string(q.Sort)} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Trouble {
		values.Set("trouble", "1")
	}
	if page > 1 {
		values.Set("page", strconv.Itoa(page))
	}
	return "?" + values.Encode()
}

func matches(b Bucket, q Query) bool {
	if q.Namespace != "" && b.Namespace != q.Namespace {
		return false
	}
	if q.Text == "" {
		return true
	}
	text := strings.ToLower(q.Text)
	return strings.Contains(b.Namespace+"/"+b.Name, text) || strings.Contains(b.S3Name, text)
}

func order(by Sort) func(a, b *Bucket) int {
	name := func(a, b *Bucket) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	largest := func(value func(*Bucket) float64) func(a, b *Bucket) int {
		return func(a, b *Bucket) int { return cmp.Or(cmp.Compare(value(b), value(a)), name(a, b)) }
	}
	switch by {
	case SortShare:
		return largest(func(b *Bucket) float64 { return percent(b.Used, b.Size) })
	case SortUsed:
		return largest(func(b *Bucket) float64 { return float64(b.Used) })
	case SortSize:
		return largest(func(b *Bucket) float64 { return float64(b.Size) })
	default:
		return name
	}
}

// count tells whether a person should look at the bucket. One that only waits for the store is no trouble of its own.
func (b *Buckets) count(bucket Bucket) (troubled bool) {
	switch level, _, _ := judge(bucket); level {
	case Warn, Bad:
		b.Troubled++
		return true
	case Idle, Unknown:
		b.Waiting++
	}
	return false
}

// judge is a bucket's state in a word, with the sentence that explains it.
func judge(b Bucket) (level Level, state, message string) {
	switch {
	case b.Deleting:
		return Busy, "Being deleted", b.Ready.Message
	case b.Ready.Type == "":
		return Unknown, "Not seen yet", ""
	case b.Ready.Status != "True":
		return judgeUnready(b.Ready)
	case b.DataLost.Status == "True":
		return Warn, "Ready, its data was lost", b.DataLost.Message
	case b.Quota.Status == "False":
		return Warn, "Full", b.Quota.Message
	case b.Quota.Reason == "NearQuota":
		return Warn, "Nearly full", b.Quota.Message
	default:
		return Good, "Ready", ""
	}
}

// judgeUnready tells a bucket that only waits for the store, and says nothing about itself, from one with trouble of its
// own.
func judgeUnready(ready Condition) (level Level, state, message string) {
	switch ready.Reason {
	case "Deleting":
		return Busy, "Being deleted", ready.Message
	case "WaitingForStorage", "NoStorageClass":
		return Idle, "Waiting for the store", ready.Message
	default:
		return Bad, "Not ready: " + words(ready.Reason), ready.Message
	}
}

func row(b Bucket) BucketView {
	const hundred, near = 100, 80
	v := BucketView{Namespace: b.Namespace, Name: b.Name, S3Name: b.S3Name, Size: Bytes(b.Size), Counted: b.Counted, ShareLevel: Good}
	v.Level, v.State, v.Message = judge(b)
	if !b.Counted {
		return v
	}
	share := percent(b.Used, b.Size)
	v.Used, v.Objects = Bytes(b.Used), Number(b.Objects)
	if b.MaxObjects > 0 {
		v.Objects += " of " + Number(b.MaxObjects)
	}
	v.Share = min(hundred, int64(share))
	v.ShareText = fmt.Sprintf("%d %%", int64(share))
	if b.Used > 0 && share < 1 {
		v.ShareText = "< 1 %"
	}
	if share >= near {
		v.ShareLevel = Warn
	}
	return v
}

// bucketProblems tells of buckets by kind of trouble, not one by one: with thousands of them a list helps nobody.
func bucketProblems(w World) []Problem {
	kinds := []struct {
		level     Level
		state, do string
	}{
		{Bad, "Not ready", "The message in the row says what is wrong; “kubectl describe sb” shows its events."},
		{Warn, "Ready, its data was lost", "What used the bucket must be filled again."},
		{Warn, "Full", "Raise the quota of the SystemBucket, or delete objects."},
		{Warn, "Nearly full", "Raise the quota of the SystemBucket before writes are refused, or delete objects."},
	}
	var found []Problem
	for _, kind := range kinds {
		var first *Bucket
		count := 0
		for i := range w.Buckets {
			if level, state, _ := judge(w.Buckets[i]); level == kind.level && strings.HasPrefix(state, kind.state) {
				count++
				if first == nil || order(SortName)(&w.Buckets[i], first) < 0 {
					first = &w.Buckets[i]
				}
			}
		}
		if count > 0 {
			found = append(found, bucketProblem(kind.level, kind.state, kind.do, count, *first))
		}
	}
	return found
}

func bucketProblem(level Level, state, do string, count int, first Bucket) Problem {
	_, _, message := judge(first)
	told := first.Namespace + "/" + first.Name + ": " + message
	if count > 1 {
		told = "The first is " + told
	}
	title := plural(count, "bucket") + ": " + strings.ToLower(state)
	return Problem{Level: level, Title: title, Message: told, Do: do, Link: Query{Trouble: true}.at(1) + "#buckets"}
}
