#include <gtest/gtest.h>

#include <cstdio>

#include "model/model.h"
#include "model/recording_ops.h"
#include "model/test_model.h"

namespace afterglow {
namespace {

TEST(LoadRealModel, ReadsSmolLm2) {
  RecordingOps ops;
  auto loaded = load_model(test_model_path(), ops);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Model& model = *loaded;
  std::printf("loaded in %.3f s\n", model.load_seconds);
  EXPECT_EQ(model.architecture_name, "llama");
  EXPECT_EQ(model.quantization, "Q4_1");
  EXPECT_EQ(model.vocab_size, 49152u);
  EXPECT_EQ(model.context_length, 8192u);
  EXPECT_EQ(model.parameters, 134515008u);
  ASSERT_EQ(model.layout.layers.size(), 30u);
  EXPECT_EQ(model.layout.layers[0].kv_heads, 3u);
  EXPECT_EQ(model.layout.layers[0].k_dim, 64u);
  EXPECT_EQ(model.tokenizer.tokens.size(), 49152u);
  EXPECT_EQ(model.tokenizer.merges.size(), 48900u);
  EXPECT_EQ(model.tokenizer.gguf_model, "gpt2");
  EXPECT_EQ(model.tokenizer.gguf_pre, "smollm");
  EXPECT_EQ(model.tokenizer.stop_tokens, std::vector<Token>{2});
  EXPECT_NE(
      model.tokenizer.chat_template.find("<|im_start|>"), std::string::npos
  );
  EXPECT_EQ(model.tokenizer.add_bos, std::optional(false));
  // Embedding, then four layers of weights each; the head is the embedding.
  EXPECT_EQ(ops.linears.size(), 1u + 30 * 4);
  EXPECT_EQ(model.architecture->head().index, 0);
  EXPECT_EQ(ops.linears[1].rows, 960u);
  EXPECT_EQ(ops.linears[1].cols, 576u);
}

}  // namespace
}  // namespace afterglow
