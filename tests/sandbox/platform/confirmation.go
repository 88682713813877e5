package platform

import (
	"fmt"
	"strings"
)

// Change is a write of one ModuleConfig. Old is nil on creation, New on deletion.
type Change struct {
	Old, New *ModuleConfig
}

// ConfirmDisabling refuses a change that would switch off a protected module without
// the confirming annotation. On an update the annotation may be on either object, so
// one patch can confirm and disable.
func ConfirmDisabling(def Definition, change Change) error {
	if !def.Disable.Confirmation || !disables(def, change) {
		return nil
	}

	if change.Old.confirmed() || change.New.confirmed() {
		return nil
	}

	text := strings.TrimSpace(def.Disable.Text())
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}

	return fmt.Errorf("%w", &RefusalError{Reason: strings.TrimSpace(fmt.Sprintf(
		"%s To confirm it, set the annotation %s=true on ModuleConfig %s.",
		text, allowDisabling, def.Name))})
}

// RefusalError is a refusal meant for the user who wrote the object.
type RefusalError struct {
	Reason string // what is wrong and what to do, as shown to the user
}

func (e *RefusalError) Error() string { return e.Reason }

// disables tells whether the module runs before the change and not after it. A
// deletion counts for a module that the deleted object had switched on, even if a
// bundle would keep it: that is how the platform asks.
func disables(def Definition, change Change) bool {
	bundle := def.EnabledByBundle()
	if !change.Old.enabled(bundle) {
		return false
	}

	if change.New == nil {
		return true
	}

	return !change.New.enabled(bundle)
}
