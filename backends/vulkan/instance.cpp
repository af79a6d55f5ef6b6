#include "backends/vulkan/instance.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

namespace tutti::vulkan {
namespace {

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

/// Requested validation: "", "1", "sync" or "gpu".
std::string wanted_validation() {
  const char* value = std::getenv("TUTTI_VULKAN_VALIDATION");
  return !value || !*value || std::string_view(value) == "0" ? "" : value;
}

}  // namespace

struct Instance::Messages {
  sdk::Host host;
  std::mutex mutex;
  std::string first;  // not yet thrown

  static VKAPI_ATTR VkBool32 VKAPI_CALL receive(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
    auto& messages = *static_cast<Messages*>(self);
    try {
      std::string text = data && data->pMessage ? data->pMessage : "a message without text";
      std::lock_guard lock(messages.mutex);
      messages.host.log(0, "vulkan", "validation: " + text);
      if (messages.first.empty()) messages.first = text;
    } catch (...) {  // exceptions must not propagate into the layer
    }
    return VK_FALSE;
  }
};

std::shared_ptr<Instance> Instance::make(const sdk::Host& host) {
  std::shared_ptr<Instance> instance(new Instance);
  instance->create(host);
  instance->list(host);
  return instance;
}

void Instance::create(const sdk::Host& host) {
  api_ = Api::load();
  VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = application.pEngineName = "tutti";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;

  VkDebugUtilsMessengerCreateInfoEXT listener = {VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  VkValidationFeaturesEXT features = {VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  constexpr VkValidationFeatureEnableEXT checks[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT, VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT,
      VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT};
  const char* debug_utils = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  std::string wanted = wanted_validation();
  if (!wanted.empty()) {
    uint32_t count = 0;
    api_.EnumerateInstanceLayerProperties(&count, nullptr);
    std::vector<VkLayerProperties> layers(count);
    api_.EnumerateInstanceLayerProperties(&count, layers.data());
    bool found = false;
    for (const VkLayerProperties& layer : layers) found = found || !std::strcmp(layer.layerName, validation_layer);
    if (!found)
      throw Error(Code::declined,
                  fmt::format("TUTTI_VULKAN_VALIDATION is set, and the layer {} is not installed", validation_layer),
                  "install the package vulkan-validationlayers, or unset the variable");
    messages_ = std::make_unique<Messages>();
    messages_->host = host;
    listener.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    listener.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    listener.pfnUserCallback = Messages::receive;
    listener.pUserData = messages_.get();
    info.pNext = &listener;  // for messages during creation and destruction of the instance
    if (wanted != "1") {
      features.enabledValidationFeatureCount = wanted == "gpu" ? 3 : 1;
      features.pEnabledValidationFeatures = checks;
      listener.pNext = &features;
    }
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validation_layer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &debug_utils;
  }
  VkResult result = api_.CreateInstance(&info, nullptr, &handle_);
  if (result != VK_SUCCESS)
    throw Error(Code::declined,
                fmt::format("{} ({})",
                            result == VK_ERROR_INCOMPATIBLE_DRIVER ? "no Vulkan driver can be loaded"
                                                                   : "cannot create a Vulkan instance",
                            result_name(result)),
                "install a driver (the package mesa-vulkan-drivers, or the GPU vendor's) and see the files named by "
                "VK_ICD_FILENAMES");
  api_.take(handle_);
  if (!wanted.empty()) {
    auto make = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        api_.GetInstanceProcAddr(handle_, "vkCreateDebugUtilsMessengerEXT"));
    listener.pNext = nullptr;
    if (!make || make(handle_, &listener, nullptr, &messenger_) != VK_SUCCESS)
      throw Error(Code::internal, "vulkan: cannot register a messenger with the validation layer");
  }
}

void Instance::list(const sdk::Host& host) {
  uint32_t count = 0;
  VkResult result = api_.EnumeratePhysicalDevices(handle_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result >= 0 && count) result = api_.EnumeratePhysicalDevices(handle_, &count, handles.data());
  if (result < 0 || count == 0)
    throw Error(Code::declined,
                result < 0 ? fmt::format("the Vulkan drivers list no devices ({})", result_name(result))
                           : std::string("no Vulkan driver finds a device"),
                "install a driver (the package mesa-vulkan-drivers, or the GPU vendor's)");
  handles.resize(count);
  const sdk::Limits limits("TUTTI_VULKAN_LIMITS", "vulkan");
  for (VkPhysicalDevice handle : handles) {
    PhysicalDevice& device = devices_.emplace_back();
    device.handle = handle;
    describe(api_, handle_, device, host, limits);
  }
}

void Instance::refresh_memory() {
  for (PhysicalDevice& device : devices_) measure_memory(api_, device);
}

Instance::~Instance() {
  if (!handle_ || !api_.DestroyInstance) return;
  if (messenger_) {
    auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        api_.GetInstanceProcAddr(handle_, "vkDestroyDebugUtilsMessengerEXT"));
    if (destroy) destroy(handle_, messenger_, nullptr);
  }
  api_.DestroyInstance(handle_, nullptr);
}

void Instance::throw_validation() const {
  if (!messages_) return;
  std::lock_guard lock(messages_->mutex);
  if (messages_->first.empty()) return;
  std::string text = std::move(messages_->first);
  messages_->first.clear();
  throw Error(Code::internal, "vulkan: validation: " + text);
}

}  // namespace tutti::vulkan
