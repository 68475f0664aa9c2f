package pci

import (
	"fmt"
	"strings"
	"syscall"
)

// Address names one function of one PCI device. Two addresses are the same
// device exactly if they are ==.
type Address struct {
	Domain   uint32
	Bus      uint8
	Device   uint8 // 0..31
	Function uint8 // 0..7
}

// String is the form sysfs uses: "0000:65:00.0", in lower case.
func (a Address) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Device, a.Function)
}

// Parse reads "[domain:]bus:device.function", all hexadecimal in either case:
// a domain of 1 to 8 digits (none means 0), a bus and a device of 1 or 2, a
// function of one. White space around it is ignored, as is a NUL and what
// follows it (vendors fill fixed buffers). Anything else is EINVAL.
func Parse(s string) (Address, error) {
	text, _, _ := strings.Cut(s, "\x00")
	text = strings.TrimSpace(text)
	var a Address
	rest := text
	if strings.Count(text, ":") == 2 {
		var domain string
		domain, rest, _ = strings.Cut(text, ":")
		n, ok := hex(domain, 8)
		if !ok {
			return Address{}, malformed(text)
		}
		a.Domain = n
	}
	busText, rest, ok := strings.Cut(rest, ":")
	if !ok {
		return Address{}, malformed(text)
	}
	deviceText, functionText, ok := strings.Cut(rest, ".")
	if !ok {
		return Address{}, malformed(text)
	}
	bus, okBus := hex(busText, 2)
	device, okDevice := hex(deviceText, 2)
	function, okFunction := hex(functionText, 1)
	if !okBus || !okDevice || !okFunction || device > 31 || function > 7 {
		return Address{}, malformed(text)
	}
	a.Bus, a.Device, a.Function = uint8(bus), uint8(device), uint8(function)
	return a, nil
}

func malformed(text string) error {
	return fmt.Errorf("%q is not a PCI address (domain:bus:device.function): %w", text, syscall.EINVAL)
}

// hex is the value of 1 to most hexadecimal digits.
func hex(s string, most int) (uint32, bool) {
	if len(s) == 0 || len(s) > most {
		return 0, false
	}
	var n uint32
	for i := range len(s) {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uint32(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint32(c-'a'+10)
		case 'A' <= c && c <= 'F':
			n = n<<4 | uint32(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
