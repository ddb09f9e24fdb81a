package ethjson

import (
	"strconv"

	"github.com/leani-go/leani/chain"
)

// AppendConfig appends the fork configuration (EIP-7910) as seen from a head block with this
// timestamp. It fails with chain.ErrScheduleUnavailable or chain.ErrPredatesSchedule.
func (e *Encoder) AppendConfig(dst []byte, timestamp uint64) ([]byte, error) {
	upgrades, err := e.network.UpgradesAt(timestamp)
	if err != nil {
		return dst, err
	}
	dst = e.appendFork(append(dst, `{"current":`...), upgrades.Current)
	dst = e.appendFork(append(dst, `,"next":`...), upgrades.Next)
	dst = e.appendFork(append(dst, `,"last":`...), upgrades.Last)
	return append(dst, '}'), nil
}

// appendFork appends one fork, or null.
func (e *Encoder) appendFork(dst []byte, f *chain.Fork) []byte {
	if f == nil {
		return append(dst, "null"...)
	}
	dst = strconv.AppendUint(append(dst, `{"activationTime":`...), f.ActivationTime, 10)
	dst = strconv.AppendUint(append(dst, `,"blobSchedule":{"target":`...), f.Blobs.Target, 10)
	dst = strconv.AppendUint(append(dst, `,"max":`...), f.Blobs.Max, 10)
	dst = strconv.AppendUint(append(dst, `,"baseFeeUpdateFraction":`...), f.Blobs.UpdateFraction, 10)
	dst = appendUint(dst, `},"chainId":"`, e.network.ChainID())
	dst = appendData(dst, `,"forkId":"`, f.ID[:])
	dst = appendContracts(append(dst, `,"precompiles":{`...), f.Precompiles)
	dst = appendContracts(append(dst, `},"systemContracts":{`...), f.SystemContracts)
	return append(dst, "}}"...)
}

// appendContracts appends members of name and address. Names need no escaping: they are made
// of capitals, digits and underscores.
func appendContracts(dst []byte, contracts []chain.NamedContract) []byte {
	for i := range contracts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, '"'), contracts[i].Name...)
		dst = appendData(dst, `":"`, contracts[i].Address[:])
	}
	return dst
}
