package chain

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// maximumGenesisBytes bounds the JSON text of a genesis file. Mainnet's is 1 MB, large test
// networks have some tens.
const maximumGenesisBytes = 64 << 20

// genesisFile is the layout of geth's genesis.json. Pointers tell absent from zero.
type genesisFile struct {
	Config        *params.ChainConfig   `json:"config"`
	Nonce         math.HexOrDecimal64   `json:"nonce"`
	Timestamp     math.HexOrDecimal64   `json:"timestamp"`
	ExtraData     hexutil.Bytes         `json:"extraData"`
	GasLimit      *math.HexOrDecimal64  `json:"gasLimit"`
	Difficulty    *math.HexOrDecimal256 `json:"difficulty"`
	MixHash       common.Hash           `json:"mixHash"`
	Coinbase      common.Address        `json:"coinbase"`
	Alloc         types.GenesisAlloc    `json:"alloc"`
	Number        math.HexOrDecimal64   `json:"number"`
	GasUsed       math.HexOrDecimal64   `json:"gasUsed"`
	ParentHash    common.Hash           `json:"parentHash"`
	BaseFee       *math.HexOrDecimal256 `json:"baseFeePerGas"`
	ExcessBlobGas *math.HexOrDecimal64  `json:"excessBlobGas"`
	BlobGasUsed   *math.HexOrDecimal64  `json:"blobGasUsed"`
	SlotNumber    *math.HexOrDecimal64  `json:"slotNumber"`
}

// LoadGenesis reads a network from the text of a geth genesis.json, plain or gzipped: the
// chain id, the fork and blob schedule, and the hash of block 0, which is computed from the
// allocation. Nothing of the text is kept.
//
// Text above 64 MiB, a configuration that geth itself would refuse, and a genesis state in a
// binary tree are errors.
func LoadGenesis(name string, r io.Reader) (*Network, error) {
	file, err := readGenesisFile(r)
	if err != nil {
		return nil, fmt.Errorf("read genesis of network %s: %w", name, err)
	}
	hash, err := file.blockHash()
	if err != nil {
		return nil, fmt.Errorf("compute genesis hash of network %s: %w", name, err)
	}
	network, err := newNetwork(name, file.Config, Genesis{Hash: hash, Timestamp: uint64(file.Timestamp)})
	if err != nil {
		return nil, fmt.Errorf("derive schedule of network %s: %w", name, err)
	}
	return network, nil
}

func readGenesisFile(r io.Reader) (*genesisFile, error) {
	buffered := bufio.NewReader(r)
	var text io.Reader = buffered
	if magic, _ := buffered.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		defer unzipped.Close()
		text = unzipped
	}
	content, err := io.ReadAll(io.LimitReader(text, maximumGenesisBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maximumGenesisBytes {
		return nil, fmt.Errorf("text above %d bytes", maximumGenesisBytes)
	}
	var file genesisFile
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, err
	}
	return &file, file.check()
}

func (g *genesisFile) check() error {
	switch {
	case g.Config == nil:
		return errors.New("member config is missing")
	case g.GasLimit == nil:
		return errors.New("member gasLimit is missing")
	case g.Difficulty == nil:
		return errors.New("member difficulty is missing")
	case g.Alloc == nil:
		return errors.New("member alloc is missing")
	case g.Number != 0:
		return fmt.Errorf("block number: got %d, want 0", uint64(g.Number))
	case (*big.Int)(g.Difficulty).Sign() < 0:
		return errors.New("difficulty is negative")
	case g.BaseFee != nil && (*big.Int)(g.BaseFee).Sign() < 0:
		return errors.New("baseFeePerGas is negative")
	case g.Config.EnableUBTAtGenesis:
		return errors.New("genesis state in a binary tree (enableUBTAtGenesis) is not supported")
	}
	return nil
}

// blockHash is the hash of the header that the file describes, with the fields that the forks
// active at genesis add.
func (g *genesisFile) blockHash() (common.Hash, error) {
	root, err := allocationRoot(g.Alloc)
	if err != nil {
		return common.Hash{}, err
	}
	header := &types.Header{
		ParentHash:    g.ParentHash,
		UncleHash:     types.EmptyUncleHash,
		Coinbase:      g.Coinbase,
		Root:          root,
		TxHash:        types.EmptyTxsHash,
		ReceiptHash:   types.EmptyReceiptsHash,
		Difficulty:    (*big.Int)(g.Difficulty),
		Number:        new(big.Int),
		GasLimit:      uint64(*g.GasLimit),
		GasUsed:       uint64(g.GasUsed),
		Time:          uint64(g.Timestamp),
		Extra:         g.ExtraData,
		MixDigest:     g.MixHash,
		Nonce:         types.EncodeNonce(uint64(g.Nonce)),
		BaseFee:       (*big.Int)(g.BaseFee),
		ExcessBlobGas: (*uint64)(g.ExcessBlobGas),
	}
	if header.GasLimit == 0 {
		header.GasLimit = params.GenesisGasLimit
	}
	if g.Config.IsLondon(header.Number) && header.BaseFee == nil {
		header.BaseFee = big.NewInt(params.InitialBaseFee)
	}
	if g.Config.IsShanghai(header.Number, header.Time) {
		header.WithdrawalsHash = &types.EmptyWithdrawalsHash
	}
	if g.Config.IsCancun(header.Number, header.Time) {
		header.ParentBeaconRoot = new(common.Hash)
		header.ExcessBlobGas = orZero(g.ExcessBlobGas)
		header.BlobGasUsed = orZero(g.BlobGasUsed)
	}
	if g.Config.IsPrague(header.Number, header.Time) {
		header.RequestsHash = &types.EmptyRequestsHash
	}
	if g.Config.IsAmsterdam(header.Number, header.Time) {
		header.SlotNumber = orZero(g.SlotNumber)
		header.BlockAccessListHash = &types.EmptyBlockAccessListHash
	}
	return header.Hash(), nil
}

func orZero(v *math.HexOrDecimal64) *uint64 {
	if v == nil {
		return new(uint64)
	}
	return (*uint64)(v)
}
