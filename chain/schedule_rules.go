package chain

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// rules ranks the forks that change which contracts are built in; each has those of the ranks
// below it. Parameter-only forks have no rank of their own.
type rules int

const (
	rulesNone rules = iota
	rulesCancun
	rulesPrague
	rulesOsaka
	rulesAmsterdam
)

// builtIn is a contract that is in force from a rank on.
type builtIn struct {
	from    rules
	name    string
	address common.Address
}

// precompiled is the address of a precompiled contract from its number.
func precompiled(number uint16) (a common.Address) {
	binary.BigEndian.PutUint16(a[common.AddressLength-2:], number)
	return a
}

// precompiles are the precompiled contracts of the rank, ascending by address. Names are
// those of EIP-7910; addresses come from the Yellow Paper and EIP-152, EIP-4844, EIP-2537 and
// EIP-7951.
func (r rules) precompiles() []NamedContract {
	return inForce(r, []builtIn{
		{rulesCancun, "ECREC", precompiled(0x01)},
		{rulesCancun, "SHA256", precompiled(0x02)},
		{rulesCancun, "RIPEMD160", precompiled(0x03)},
		{rulesCancun, "ID", precompiled(0x04)},
		{rulesCancun, "MODEXP", precompiled(0x05)},
		{rulesCancun, "BN254_ADD", precompiled(0x06)},
		{rulesCancun, "BN254_MUL", precompiled(0x07)},
		{rulesCancun, "BN254_PAIRING", precompiled(0x08)},
		{rulesCancun, "BLAKE2F", precompiled(0x09)},
		{rulesCancun, "KZG_POINT_EVALUATION", precompiled(0x0a)},
		{rulesPrague, "BLS12_G1ADD", precompiled(0x0b)},
		{rulesPrague, "BLS12_G1MSM", precompiled(0x0c)},
		{rulesPrague, "BLS12_G2ADD", precompiled(0x0d)},
		{rulesPrague, "BLS12_G2MSM", precompiled(0x0e)},
		{rulesPrague, "BLS12_PAIRING_CHECK", precompiled(0x0f)},
		{rulesPrague, "BLS12_MAP_FP_TO_G1", precompiled(0x10)},
		{rulesPrague, "BLS12_MAP_FP2_TO_G2", precompiled(0x11)},
		{rulesOsaka, "P256VERIFY", precompiled(0x100)},
	})
}

// systemContracts are the contracts of the rank that block processing calls, ascending by
// name (EIP-4788, EIP-6110, EIP-2935, EIP-7002, EIP-7251, EIP-8282). The deposit contract is
// the only one whose address a chain chooses.
func (r rules) systemContracts(deposit common.Address) []NamedContract {
	return inForce(r, []builtIn{
		{rulesCancun, "BEACON_ROOTS_ADDRESS", params.BeaconRootsAddress},
		{rulesAmsterdam, "BUILDER_DEPOSIT_CONTRACT_ADDRESS", params.BuilderDepositAddress},
		{rulesAmsterdam, "BUILDER_EXIT_CONTRACT_ADDRESS", params.BuilderExitAddress},
		{rulesPrague, "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS", params.ConsolidationQueueAddress},
		{rulesPrague, "DEPOSIT_CONTRACT_ADDRESS", deposit},
		{rulesPrague, "HISTORY_STORAGE_ADDRESS", params.HistoryStorageAddress},
		{rulesPrague, "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS", params.WithdrawalQueueAddress},
	})
}

func inForce(r rules, all []builtIn) []NamedContract {
	all = slices.DeleteFunc(all, func(c builtIn) bool { return c.from > r })
	contracts := make([]NamedContract, len(all))
	for i, c := range all {
		contracts[i] = NamedContract{Name: c.name, Address: c.address}
	}
	return contracts
}
