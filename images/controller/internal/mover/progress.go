package mover

import (
	"errors"
	"sync/atomic"
)

// Progress counts while methods of a Mover run. Nothing sets it back but Reset.
type Progress struct {
	// Objects and Bytes of the source that the running passes or verifications are done with: found equal, copied, or
	// read back.
	Objects, Bytes atomic.Int64
	// Copied objects, and the bytes that went from the source to the target.
	Copied, CopiedBytes atomic.Int64
	// VerifiedBytes were read back from the target.
	VerifiedBytes atomic.Int64
	// Deleted objects of the target.
	Deleted atomic.Int64
}

// Reset begins the count anew.
func (p *Progress) Reset() {
	for _, counter := range []*atomic.Int64{&p.Objects, &p.Bytes, &p.Copied, &p.CopiedBytes, &p.VerifiedBytes, &p.Deleted} {
		counter.Store(0)
	}
}

// tally is what one call saw.
type tally struct {
	objects, bytes, copied, copiedBytes, deleted, followed, mended atomic.Int64
}

func (t *tally) follow(now version, p pair) {
	switch {
	case !now.isGone():
		t.copied.Add(1)
		t.copiedBytes.Add(now.size)
	case p.target != nil:
		t.deleted.Add(1)
	}
}

func (t *tally) mend(trouble error) {
	if errors.Is(trouble, errOtherVersion) {
		t.followed.Add(1)
		return
	}
	t.mended.Add(1)
}

func (t *tally) pass() PassResult {
	return PassResult{
		Objects: t.objects.Load(), Bytes: t.bytes.Load(), Copied: t.copied.Load(), CopiedBytes: t.copiedBytes.Load(), Deleted: t.deleted.Load(),
	}
}

func (t *tally) verification() VerifyResult {
	return VerifyResult{Objects: t.objects.Load(), Bytes: t.bytes.Load(), Followed: t.followed.Load(), Mended: t.mended.Load()}
}
