package access

import "strings"

// Kind is what becomes of an operation.
type Kind uint8

// The kinds.
const (
	Refuse Kind = iota // the error that came with it is the answer
	Answer             // the gateway answers by itself, Garage is not asked
	Pass               // goes on to Garage, signed anew
)

// Request is an S3 request as plain data. http.Header and url.Values fit Header and Query as they are.
type Request struct {
	Method string
	Bucket string // from host or path; "" for the service itself
	Key    string // decoded; "" for the bucket itself
	Query  map[string][]string
	Header map[string][]string
}

// Operation is the S3 operation a request stands for.
type Operation struct {
	Name       string // as S3 names it: GetObject, ListObjectsV2 ...
	Kind       Kind
	Need       Permission // every bit of it; none: any key of the bucket will do
	CopySource *CopySource
	Query      map[string]string // the parameters that go on to Garage, and no others
}

// Writes tells whether the operation changes the bucket, so that a write gate and the guard of free space apply.
func (o Operation) Writes() bool { return o.Kind == Pass && o.Need.Covers(Write) }

// Frees tells whether the operation only removes: such a write goes through on a full volume.
func (o Operation) Frees() bool {
	switch o.Name {
	case "DeleteObject", "DeleteObjects", "AbortMultipartUpload":
		return true
	}
	return false
}

// Decide tells which operation a request stands for and whether a key with these claims may do it: the bucket first,
// so that nothing is said about another's, then the operation, the bucket of a copy source, the permission. The claims
// must come from Ring.Verify. The error is an Error.
func Decide(c Claims, r Request) (Operation, error) {
	if r.Bucket != "" && BucketTag(r.Bucket) != c.BucketTag {
		return Operation{}, ErrDenied
	}
	op, err := Classify(r)
	if err != nil {
		return op, err
	}
	if op.CopySource != nil && BucketTag(op.CopySource.Bucket) != c.BucketTag {
		return Operation{Name: op.Name}, ErrDenied.With("The key is not for the bucket of the copy source.")
	}
	if !c.Permission.Covers(op.Need) {
		return Operation{Name: op.Name}, ErrDenied.With(op.Name + " needs the permission " + op.Need.String() + ".")
	}
	return op, nil
}

// Classify tells which operation a request stands for. What Garage would ignore, misread or let a consumer change is
// refused: the operation then has no more than a name. The error is an Error.
func Classify(r Request) (Operation, error) {
	query, keyword, err := sortQuery(r.Query)
	if err != nil {
		return Operation{}, err
	}
	route, known := lookup(target{r.Method, levelOf(r), keyword})
	if !known {
		return Operation{}, unknownTarget(r, keyword)
	}
	op := Operation{Name: route.name, Kind: route.kind, Need: route.need}
	if route.kind == Refuse {
		return op, route.err
	}
	if err := checkHeaders(&op, r.Header); err != nil {
		return Operation{Name: op.Name}, err
	}
	if err := checkQuery(&op, route, query); err != nil {
		return Operation{Name: op.Name}, err
	}
	return op, nil
}

// level is what a request addresses.
type level uint8

const (
	service level = iota
	bucket
	object
)

func levelOf(r Request) level {
	switch {
	case r.Bucket == "":
		return service
	case r.Key == "":
		return bucket
	default:
		return object
	}
}

func unknownTarget(r Request, keyword string) error {
	if keyword != "" {
		return ErrNotImplemented.With("The subresource " + keyword + " is not implemented for " + r.Method + ".")
	}
	return ErrMethod
}

// headerValues is the values of a header by its lower-case name, whatever the spelling in the map.
func headerValues(header map[string][]string, lower string) []string {
	for name, values := range header {
		if strings.EqualFold(name, lower) {
			return values
		}
	}
	return nil
}
