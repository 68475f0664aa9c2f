package registry

import (
	"fmt"
	"strings"
	"syscall"

	"libphoenix/connectors"
	"libphoenix/connectors/amd"
	"libphoenix/connectors/ascend"
	"libphoenix/connectors/host"
	"libphoenix/connectors/nvidia"
)

// defaultVendor is set by the linker and by nothing else.
var defaultVendor = "NVIDIA"

// Options is what the environment may say about every vendor.
type Options struct {
	SysfsRoot string // where sysfs is mounted; "": /sys

	// LookupEnv reads the variables of the process as they are now, for the
	// vendors' own (CUDA_VISIBLE_DEVICES); nil: there are none.
	LookupEnv func(name string) (string, bool)
}

// vendors is the table; read-only.
var vendors = [...]struct {
	name string
	make func(Options) connectors.Connector
}{
	{"NVIDIA", func(o Options) connectors.Connector {
		return nvidia.New(nvidia.Config{SysfsRoot: o.SysfsRoot, LookupEnv: o.LookupEnv})
	}},
	{"AMD", func(o Options) connectors.Connector { return amd.New(amd.Config{SysfsRoot: o.SysfsRoot}) }},
	{"ASCEND", func(o Options) connectors.Connector { return ascend.New(ascend.Config{SysfsRoot: o.SysfsRoot}) }},
	{"HOST", func(Options) connectors.Connector { return host.New() }},
}

// Choose makes the connector of the vendor called name, in any case; "" is
// the vendor the library was built for. It loads nothing and looks at no
// device. EINVAL: there is no such vendor; the text lists those there are.
func Choose(name string, opts Options) (connectors.Connector, error) {
	return choose(name, defaultVendor, opts)
}

func choose(name, otherwise string, opts Options) (connectors.Connector, error) {
	if name == "" {
		name = otherwise
	}
	for _, v := range vendors {
		if strings.EqualFold(v.name, name) {
			return v.make(opts), nil
		}
	}
	return nil, fmt.Errorf("vendor %q is none of %s: %w", name, strings.Join(Names(), ", "), syscall.EINVAL)
}

// Default is the name of the vendor the library was built for.
func Default() string { return defaultVendor }

// Names lists the vendors, in the order of the table.
func Names() []string {
	names := make([]string, 0, len(vendors))
	for _, v := range vendors {
		names = append(names, v.name)
	}
	return names
}
