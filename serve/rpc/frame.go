package rpc

import (
	"encoding/binary"
	"unicode/utf8"
)

// Opcodes of RFC 6455, section 5.2.
const (
	opText  = 0x1
	opClose = 0x8
	opPing  = 0x9
	opPong  = 0xa
)

const (
	// finalFrame marks the last frame of a message; every frame sent is one.
	finalFrame = 0x80
	// maxCloseReason is what a close frame has room for: a control frame holds 125 bytes (RFC 6455, section 5.5), two
	// of which are the code.
	maxCloseReason = 123
)

// appendFrameHeader appends the header of an unmasked frame that is a whole message.
func appendFrameHeader(dst []byte, opcode byte, payload int) []byte {
	dst = append(dst, finalFrame|opcode)
	switch {
	case payload <= 125:
		return append(dst, byte(payload))
	case payload <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, 126), uint16(payload))
	}
	return binary.BigEndian.AppendUint64(append(dst, 127), uint64(payload))
}

// appendControl appends a control frame, whose payload is at most 125 bytes.
func appendControl(dst []byte, opcode byte, payload string) []byte {
	return append(appendFrameHeader(dst, opcode, len(payload)), payload...)
}

// appendCloseFrame appends a close frame; a reason that is too long is cut.
func appendCloseFrame(dst []byte, code uint16, reason string) []byte {
	if len(reason) > maxCloseReason {
		reason = reason[:maxCloseReason]
		for !utf8.ValidString(reason) {
			reason = reason[:len(reason)-1]
		}
	}
	dst = appendFrameHeader(dst, opClose, 2+len(reason))
	return append(binary.BigEndian.AppendUint16(dst, code), reason...)
}
