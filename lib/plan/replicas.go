package plan

import "fmt"

const (
	faultTolerant = 3 // replicas and replication factor on three nodes (C3)
	single        = 1 // one replica, factor 1 (C4)
)

// modeChoice is how many replicas are wanted, and why.
type modeChoice struct {
	replicas int
	why      string
	// setting that asks for this mode; empty when nobody asked and the control plane decided.
	setting string
}

// wantedMode is the order of C5: the module's setting, the platform's, the control plane.
func wantedMode(s Settings) modeChoice {
	switch {
	case s.HighAvailability != nil:
		return askedMode(*s.HighAvailability, "system-s3")
	case s.GlobalHighAvailability != nil:
		return askedMode(*s.GlobalHighAvailability, "global")
	case s.ControlPlaneHighlyAvailable:
		return modeChoice{replicas: faultTolerant, why: "Three replicas, because the control plane has more than one node."}
	default:
		return modeChoice{replicas: single, why: "One replica, because the control plane has one node."}
	}
}

func askedMode(on bool, config string) modeChoice {
	m := modeChoice{replicas: single, setting: fmt.Sprintf("the setting highAvailability: %t in ModuleConfig %s", on, config)}
	if on {
		m.replicas = faultTolerant
	}
	m.why = fmt.Sprintf("%s, because of %s.", replicas(m.replicas), m.setting)
	return m
}

// subject begins a sentence with who asks for the mode.
func (m modeChoice) subject() string {
	switch {
	case m.setting != "":
		return capital(m.setting)
	case m.replicas == single:
		return "A control plane with one node"
	default:
		return "A control plane with more than one node"
	}
}

// kept is what an existing plane stays with, and what stands between it and what is wanted.
type kept struct {
	why     string
	problem string
}
