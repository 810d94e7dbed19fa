package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	maxFrame   = buffer.MaxChunkSize // bytes; an Ethernet frame of LinkMTU fits
	largeFrame = maxFrame / 4        // from here on a frame keeps the buffer it was read into
	// vnetSize is the header that a packet socket puts before each frame
	// (struct virtio_net_hdr; packet(7), PACKET_VNET_HDR).
	vnetSize = 10
	// burst is how many frames are read before others get a turn.
	burst = 64
)

// wire is the stack's link layer over the link's packet socket.
//
// It reads by Go's poller and hands each packet to the stack on the reading
// goroutine, so that a packet costs no switch of threads: netstack's own
// fdbased endpoint blocks a thread in poll(2) and needs three for each
// (BenchmarkRoundTrip).
type wire struct {
	file     *os.File // owned
	raw      syscall.RawConn
	mtu      uint32
	ethernet bool // else bare IP packets
	vnet     bool // each frame has a virtio header: checksums are left to the kernel

	mu         sync.Mutex
	dispatcher stack.NetworkDispatcher // guarded by mu
	reading    sync.WaitGroup
}

// newWire takes over the link's packet socket, which it closes also when it
// fails.
func newWire(l *Link) (*wire, error) {
	// A descriptor that came over a socket may be in blocking mode, and its
	// os.File then isn't known to the poller.
	raw, err := l.Packet.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, fail := -1, error(nil)
	err = raw.Control(func(old uintptr) {
		if fd, fail = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); fail == nil {
			fail = unix.SetNonblock(fd, true)
		}
	})
	if err = errors.Join(err, fail); err != nil {
		return nil, err
	}
	w := &wire{file: os.NewFile(uintptr(fd), "link"), mtu: uint32(l.MTU), ethernet: l.Kind == linkVeth, vnet: l.VnetHeader}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, err
	}
	if err := w.file.SetReadDeadline(time.Time{}); err != nil {
		w.file.Close()
		return nil, fmt.Errorf("not pollable: %w", err)
	}
	return w, nil
}

// Attach starts reading; with nil it stops and waits until nothing more is
// being delivered.
func (w *wire) Attach(d stack.NetworkDispatcher) {
	w.mu.Lock()
	was := w.dispatcher
	w.dispatcher = d
	w.mu.Unlock()
	switch {
	case d != nil && was == nil:
		w.reading.Go(func() { w.read(d) })
	case d == nil && was != nil:
		_ = w.file.SetReadDeadline(time.Unix(1, 0))
		w.reading.Wait()
	}
}

func (w *wire) IsAttached() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dispatcher != nil
}

// read delivers packets until the deadline is set. An error that stays ends it
// as well: the sandbox then has no network, which is how it has to fail.
func (w *wire) read(d stack.NetworkDispatcher) {
	view := buffer.NewViewSize(maxFrame)
	defer func() { view.Release() }()
	vnet := make([]byte, vnetSize)
	for failures := 0; failures < burst; {
		var n int
		var fail error
		done := 0
		err := w.raw.Read(func(fd uintptr) bool {
			for done = 0; done < burst; done++ {
				if w.vnet {
					n, fail = unix.Readv(int(fd), [][]byte{vnet, view.AsSlice()})
					n -= vnetSize
				} else {
					n, fail = unix.Read(int(fd), view.AsSlice())
				}
				if errors.Is(fail, unix.EAGAIN) {
					fail = nil
					return false
				}
				if fail != nil {
					return true
				}
				view = w.deliver(d, view, n)
			}
			return true
		})
		switch {
		case err != nil:
			return // the deadline, or closed
		case fail != nil && !errors.Is(fail, unix.EINTR):
			failures++ // the interface went down, for one; it may be its last word
		default:
			failures = 0
		}
	}
}

// deliver hands the first n bytes of view to the stack and returns a view to
// read the next frame into.
func (w *wire) deliver(d stack.NetworkDispatcher, view *buffer.View, n int) *buffer.View {
	if n <= 0 {
		return view
	}
	var payload buffer.Buffer
	next := view
	if n >= largeFrame {
		next = buffer.NewViewSize(maxFrame)
		view.CapLength(n)
		payload = buffer.MakeWithView(view)
	} else {
		payload = buffer.MakeWithData(view.AsSlice()[:n])
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: payload})
	defer pkt.DecRef()
	if w.ParseHeader(pkt) {
		d.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
	}
	return next
}

// WritePackets sends packets; what the kernel has no room for is dropped, as
// on any wire.
func (w *wire) WritePackets(pkts stack.PacketBufferList) (sent int, err tcpip.Error) {
	var iovs [][]byte
	for _, pkt := range pkts.AsSlice() {
		iovs = iovs[:0]
		if w.vnet {
			iovs = append(iovs, virtioHeader(pkt))
		}
		iovs = append(iovs, pkt.AsSlices()...)
		var fail error
		if closed := w.raw.Control(func(fd uintptr) { _, fail = unix.Writev(int(fd), iovs) }); closed != nil {
			return sent, &tcpip.ErrClosedForSend{}
		}
		if fail != nil {
			return sent, &tcpip.ErrNoBufferSpace{}
		}
		sent++
	}
	return sent, nil
}

// virtioHeader tells the kernel which checksum to fill in and, for a packet
// larger than its segments may be, how to cut it (linux/virtio_net.h). The
// integers are the machine's own (packet(7) predates virtio 1.0).
func virtioHeader(pkt *stack.PacketBuffer) []byte {
	const needsChecksum, tcp4, tcp6 = 1, 1, 4
	h := make([]byte, vnetSize)
	o := pkt.GSOOptions
	if o.Type == stack.GSONone {
		return h
	}
	put := binary.NativeEndian.PutUint16
	put(h[2:], uint16(pkt.HeaderSize()))
	if o.NeedsCsum {
		h[0] = needsChecksum
		put(h[6:], header.EthernetMinimumSize+o.L3HdrLen)
		put(h[8:], o.CsumOffset)
	}
	if pkt.Data().Size() > int(o.MSS) {
		h[1] = tcp4
		if o.Type == stack.GSOTCPv6 {
			h[1] = tcp6
		}
		put(h[4:], o.MSS)
	}
	return h
}

// ParseHeader takes a packet's link header off. Frames for somebody else,
// which nobody inside can send, are dropped.
func (w *wire) ParseHeader(pkt *stack.PacketBuffer) bool {
	if !w.ethernet {
		first, ok := pkt.Data().PullUp(1)
		if !ok {
			return false
		}
		pkt.NetworkProtocolNumber = header.IPv4ProtocolNumber
		if header.IPVersion(first) == header.IPv6Version {
			pkt.NetworkProtocolNumber = header.IPv6ProtocolNumber
		}
		return true
	}
	b, ok := pkt.LinkHeader().Consume(header.EthernetMinimumSize)
	if !ok {
		return false
	}
	h := header.Ethernet(b)
	pkt.NetworkProtocolNumber = h.Type()
	to := h.DestinationAddress()
	return to == tcpip.LinkAddress(gatewayMAC) || to[0]&1 == 1
}

// AddHeader puts a packet's link header on.
func (w *wire) AddHeader(pkt *stack.PacketBuffer) {
	if !w.ethernet {
		return
	}
	header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize)).Encode(&header.EthernetFields{
		SrcAddr: tcpip.LinkAddress(gatewayMAC), DstAddr: tcpip.LinkAddress(sandboxMAC), Type: pkt.NetworkProtocolNumber,
	})
}

func (w *wire) MaxHeaderLength() uint16 {
	if w.ethernet {
		return header.EthernetMinimumSize
	}
	return 0
}

func (w *wire) ARPHardwareType() header.ARPHardwareType {
	if w.ethernet {
		return header.ARPHardwareEther
	}
	return header.ARPHardwareNone
}

// Capabilities says that checksums of arriving packets needn't be looked at:
// they never crossed a real wire, and the sandbox's kernel leaves them for a
// network card to fill in.
func (w *wire) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

// SupportedGSO is whether packets may leave without checksum.
func (w *wire) SupportedGSO() stack.SupportedGSO {
	if w.vnet {
		return stack.HostGSOSupported
	}
	return stack.GSONotSupported
}

// GSOMaxSize is in bytes.
func (w *wire) GSOMaxSize() uint32 {
	if w.vnet {
		return w.mtu
	}
	return 0
}

func (w *wire) MTU() uint32                      { return w.mtu }
func (w *wire) SetMTU(mtu uint32)                { w.mtu = mtu }
func (w *wire) LinkAddress() tcpip.LinkAddress   { return tcpip.LinkAddress(gatewayMAC) }
func (w *wire) SetLinkAddress(tcpip.LinkAddress) {}
func (w *wire) SetOnCloseAction(func())          {}
func (w *wire) Wait()                            { w.reading.Wait() }
func (w *wire) Close()                           { _ = w.file.Close() }

var (
	_ stack.LinkEndpoint = (*wire)(nil)
	_ stack.GSOEndpoint  = (*wire)(nil)
)
