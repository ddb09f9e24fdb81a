package chain

import "github.com/ethereum/go-ethereum/common"

// CheckStatus is the outcome of a check.
type CheckStatus uint8

// The outcomes. The zero value is a check that nobody made.
const (
	NotChecked  CheckStatus = iota
	Verified                // it was made and holds
	Failed                  // it was made and does not hold
	Unavailable             // what it needs is not there

	checkStatusCount = iota
)

var checkStatusNames = [checkStatusCount]string{"NotChecked", "Verified", "Failed", "Unavailable"}

// String is the name in frames, such as "NotChecked".
func (s CheckStatus) String() string { return nameOf(checkStatusNames[:], s, "check status") }

// ParseCheckStatus reads a name as String writes it.
func ParseCheckStatus(name string) (CheckStatus, error) {
	return parseName[CheckStatus](checkStatusNames[:], name, "check status")
}

// Check is the outcome of a check, with a few words where that helps.
type Check struct {
	Status CheckStatus
	Detail string // empty when there is none
}

// VerificationReport says what whoever delivers a frame has checked of it. It is a report, not a proof:
// a reader believes the checks that it made itself.
type VerificationReport struct {
	HeaderHash       Check // the header hashes to the block hash
	ParentContinuity Check // the block follows the one delivered before it
	TransactionsRoot Check
	ReceiptsRoot     Check
	WithdrawalsRoot  Check
	DatasetChecksum  Check // the object has the digest that was published
	// Anchor joins the block to the consensus chain; nil when nothing does.
	Anchor *ConsensusAnchor
}

// Checks are all checks, in the order of the fields.
func (r *VerificationReport) Checks() [6]*Check {
	return [...]*Check{
		&r.HeaderHash, &r.ParentContinuity, &r.TransactionsRoot, &r.ReceiptsRoot, &r.WithdrawalsRoot, &r.DatasetChecksum,
	}
}

// ConsensusAnchor names the beacon block that carries an execution block.
type ConsensusAnchor struct {
	Finality           Finality
	ExecutionBlockHash common.Hash
	BeaconSlot         uint64
	BeaconBlockRoot    common.Hash
}
