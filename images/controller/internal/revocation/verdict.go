package revocation

import (
	"time"

	"github.com/deckhouse/system-s3/lib/access"
)

// verdict is what is known of a holding's right.
type verdict struct {
	// doubted was refused once: it may be an apiserver that has only just started.
	doubted access.Permission
	// lost was refused twice in a row, and keys with it are refused from then on.
	lost access.Permission
}

// next is the verdict after RBAC was asked again. What is granted again is no longer lost at once.
func (v verdict) next(held, granted access.Permission) verdict {
	denied := held &^ granted
	lost := denied & (v.lost | v.doubted)
	return verdict{doubted: denied &^ lost, lost: lost}
}

func (v verdict) clear() bool { return v == verdict{} }

// entry is a lost right in the form in which gateways take it.
type entry struct {
	Subject    string            `json:"subject"`
	Bucket     string            `json:"bucket"`
	Permission access.Permission `json:"permission"`
	Until      time.Time         `json:"until"`
}

// entries are the rights that were lost, while keys with them may live.
func entries(holdings []Holding, verdicts map[holder]verdict) []entry {
	list := []entry{}
	for _, h := range holdings {
		if lost := verdicts[h.holder()].lost; lost != 0 {
			list = append(list, entry{
				Subject: access.SubjectTag(h.User).String(), Bucket: access.BucketTag(h.Bucket).String(), Permission: lost, Until: h.Until,
			})
		}
	}
	return list
}
