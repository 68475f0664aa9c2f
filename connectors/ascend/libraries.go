package ascend

import (
	"fmt"
	"math"
	"syscall"
	"unsafe"

	"libphoenix/connectors/lookup"
	"libphoenix/internal/dl"
	"libphoenix/internal/pci"
)

// repeatInitialize is ACL_ERROR_REPEAT_INITIALIZE (acl_base.h).
const repeatInitialize = 100002

// libraries are the two vendor libraries and the functions of them that we
// call, with their signatures as in acl.h, acl_rt.h and dcmi_interface_api.h.
// All return an int, 0 for success. Set by openLibraries, then read-only.
type libraries struct {
	acl      *dl.Library
	aclInit  dl.Func // (const char *config), NULL
	count    dl.Func // (uint32_t *count)
	phyID    dl.Func // (int32_t ordinal, int32_t *physical)
	dcmi     *dl.Library
	dcmiInit dl.Func // (void)
	logicID  dl.Func // (unsigned physical, unsigned *logic); may be missing
	cardID   dl.Func // (int *card, int *device, unsigned logic)
	pcieInfo dl.Func // (int card, int device, struct pcieInfo *)
}

// pcieInfo is struct dcmi_pcie_info_all of dcmi_interface_api.h.
type pcieInfo struct {
	vendor, subvendor, deviceID, subdevice uint32
	domain                                 int32
	bus, device, function                  uint32
	_                                      [32]byte
}

// The management library writes this much: an index out of [1]struct{} does
// not compile.
var _ = [1]struct{}{}[unsafe.Sizeof(pcieInfo{})-64]

// openLibraries loads both and looks the functions up; it calls none.
func openLibraries(runtime, management string) (*libraries, error) {
	l := new(libraries)
	var err error
	l.acl, err = dl.Load([]string{runtime},
		dl.Sym{Name: "aclInit", Into: &l.aclInit},
		dl.Sym{Name: "aclrtGetDeviceCount", Into: &l.count},
		dl.Sym{Name: "aclrtGetPhyDevIdByLogicDevId", Into: &l.phyID},
	)
	if err != nil {
		return nil, err
	}
	l.dcmi, err = dl.Load([]string{management},
		dl.Sym{Name: "dcmi_init", Into: &l.dcmiInit},
		dl.Sym{Name: "dcmi_get_device_logicid_from_phyid", Into: &l.logicID, Optional: true},
		dl.Sym{Name: "dcmi_get_card_id_device_id_from_logicid", Into: &l.cardID},
		dl.Sym{Name: "dcmi_get_device_pcie_info_v2", Into: &l.pcieInfo},
	)
	if err != nil {
		_ = l.acl.Close()
		return nil, err
	}
	return l, nil
}

// close gives both references back; nothing was called yet.
func (l *libraries) close() {
	_ = l.dcmi.Close()
	_ = l.acl.Close()
}

// physical asks the runtime which physical device an ordinal means, starting
// it only if it must.
func (l *libraries) physical(ordinal int) (uint32, error) {
	var count uint32
	if code := l.count.CallP(unsafe.Pointer(&count)); code != 0 {
		if code := l.aclInit.CallP(nil); code != 0 && code != repeatInitialize {
			return 0, l.acl.Failed("aclInit", code, "")
		}
		if code := l.count.CallP(unsafe.Pointer(&count)); code != 0 {
			return 0, l.acl.Failed("aclrtGetDeviceCount", code, "")
		}
	}
	if err := lookup.Counted(ordinal, int64(min(count, math.MaxInt32)), "ASCEND_RT_VISIBLE_DEVICES counts"); err != nil {
		return 0, err
	}
	var physical int32
	if code := l.phyID.CallIP(int32(ordinal), unsafe.Pointer(&physical)); code != 0 {
		return 0, l.acl.Failed("aclrtGetPhyDevIdByLogicDevId", code, "")
	}
	return uint32(physical), nil
}

// address asks the management library where a physical device is.
func (l *libraries) address(physical uint32) (pci.Address, error) {
	if code := l.dcmiInit.Call(); code != 0 {
		return pci.Address{}, l.dcmi.Failed("dcmi_init", code, "")
	}
	logic := physical
	if l.logicID != 0 {
		if code := l.logicID.CallUP(physical, unsafe.Pointer(&logic)); code != 0 {
			return pci.Address{}, l.dcmi.Failed("dcmi_get_device_logicid_from_phyid", code, "")
		}
	}
	var card, device int32
	if code := l.cardID.CallPPU(unsafe.Pointer(&card), unsafe.Pointer(&device), logic); code != 0 {
		return pci.Address{}, l.dcmi.Failed("dcmi_get_card_id_device_id_from_logicid", code, "")
	}
	var info pcieInfo
	if code := l.pcieInfo.CallIIP(card, device, unsafe.Pointer(&info)); code != 0 {
		return pci.Address{}, l.dcmi.Failed("dcmi_get_device_pcie_info_v2", code, "")
	}
	if info.bus > 0xff || info.device > 31 || info.function > 7 {
		return pci.Address{}, fmt.Errorf("%s gives no PCI address (bus %#x, device %#x, function %#x): %w",
			l.dcmi.Name(), info.bus, info.device, info.function, syscall.ENODEV)
	}
	return pci.Address{
		Domain: uint32(info.domain), Bus: uint8(info.bus),
		Device: uint8(info.device), Function: uint8(info.function),
	}, nil
}
